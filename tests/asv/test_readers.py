"""What asv imports, forks and shows: it must know nothing of a JAX backend."""

import subprocess
import sys

import pytest
from asv_runner.benchmarks.mark import SkipNotImplemented

from harness.asv import suite
from harness.asv.call import AsvCall
from harness.asv.measure import measure, work_of
from harness.asv.metrics import answers as answers_of
from harness.asv.verbs import call_of
from harness.program.facts import Facts
from harness.workload.workload import Case, Workload, enumerate_cases, name_of, spec
from tests.asv.project import SCALE, Project
from tests.frame.comparisons import xla
from tests.frame.trees import failed, record
from tests.sweeps import workload

ANEW = {"since_ms": 5}
"""What is measured anew, whatever there is."""

READ = """
import sys
from asv_runner import discovery
import jax
from jax._src import xla_bridge

sys.path.insert(0, {project!r})
root = {project!r} + "/benchmarks"
for benchmark in discovery.disc_benchmarks(root):
    pass  # what asv's forkserver does before it forks
answers = {{"cases": {{{case!r}: {{"trace": {{"samples": [0.5, 0.75], "number": 1}}}}}}}}
for stage in ("trace", "compile"):
    benchmark = discovery.get_benchmark_from_name(root, f"scale.Scale.track_{{stage}}-0")
    benchmark.set_cache(answers)
    try:
        print(benchmark.do_run())
    except Exception as error:
        print(type(error).__name__, error)
print(xla_bridge.backends_are_initialized())
jax.numpy.zeros(())
print(xla_bridge.backends_are_initialized())
"""


def test_importing_the_benchmarks_and_reading_results_wakes_no_backend(tmp_path):
    project = Project(tmp_path, {"scale": SCALE})
    code = READ.format(project=str(project.folder), case=Case().id)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=project.environment
    )
    assert done.stdout.splitlines() == [
        "{'samples': [0.5, 0.75], 'number': 1}",
        "SkipNotImplemented no stage compile here",
        "False",
        "True",
    ], done.stderr


def test_asv_has_the_names_of_what_is_no_plain_value():
    class Sized(Workload):
        sweep = {"size": {"S": {"n": 1}, "M": {"n": 2}}, "activation": {"abs": abs}}
        targets = ("cpu",)
        function = staticmethod(abs)

        def inputs(self, n, activation):
            return spec((n,))

    axes = [list(values) for values in suite.coordinate_axes(Sized).values()]
    assert axes == [["S", "M"], ["abs"], ["forward"], ["cpu"]]
    last = list(enumerate_cases(Sized))[-1]
    assert suite.case_at(Sized, ("M", "abs", "forward", "cpu")) == last


def test_installing_twice_attaches_once():
    from harness.workload import workload

    hooks = len(workload.declaration_hooks)
    suite.install()
    suite.install()
    assert len(workload.declaration_hooks) == max(hooks, 1)
    if not hooks:
        workload.declaration_hooks.remove(suite.attach)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run", {}),
        ("run --quick", {"quick": True}),
        ("run -q HEAD^!", {"quick": True}),
        ("run -m here --set-commit-hash abc", {"machine": "here", "commit": "abc"}),
        ("run --machine=here", {"machine": "here"}),
        ("--config other.json run -n", {"config": "other.json", "dry_run": True}),
        ("run --bench Scale -b Sum", {"bench": ("Scale", "Sum")}),
        ("run --append-samples", {"since_ms": 5}),
        ("run --interleave-rounds -a rounds=3", {"interleave": True, "processes": 3, **ANEW}),
        ("run --profile", {"profile": "run"}),
        ("run --skip-existing --record-samples --durations all", {}),
        ("continuous main --quick", {"quick": True, "interleave": True, **ANEW}),
        ("continuous --no-interleave-rounds main", ANEW),
        ("profile scale.track_x", {"bench": ("scale.track_x",), "profile": "profile", **ANEW}),
        ("find v1..v2 scale.track_x", {"bench": ("scale.track_x",), **ANEW}),
    ],
)
def test_the_command_line_of_asv_is_read_as_asv_reads_it(line, expected):
    assert call_of(line.split(), now_ms=5) == AsvCall(**expected)


def test_what_asv_would_not_accept_is_no_call_of_asv(capsys):
    assert call_of(["run", "--no-such-option"], now_ms=5) == AsvCall()
    assert capsys.readouterr().err == ""


def test_what_is_there_answers_unless_it_is_to_be_measured_afresh(tmp_path, monkeypatch):
    for name, value in (("RESULTS", str(tmp_path)), ("EFFORT", "1x1"), ("FIRST_CALLS", "0")):
        monkeypatch.setenv(f"HARNESS_{name}", value)
    once, again = (measure(workload("small", "Scale"))["cases"] for _ in range(2))
    assert once == again != {}
    monkeypatch.setenv("HARNESS_FRESH", "1")
    assert measure(workload("small", "Scale"))["cases"] != once


class Product(Workload):
    sweep = {"size": [8, 16]}
    precisions = ("ieee", "tf32")
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size, size)), spec((size, size))

    @staticmethod
    def function(x, y):
        return x @ y


def answers(*records):
    for one in records:
        one.workload = name_of(Product)
    return answers_of(Product, list(records))


def of(case, process=0, launches=None, **fields):
    about = {"axes": dict(case.axes), "precision": case.precision, "key": case.id}
    return record(process, **about, facts=Facts(launches=launches, flops=2.5), **fields)


CASES = list(enumerate_cases(Product))


def look_up(found, stage, case=CASES[0]):
    return suite.look_up(Product, found, stage, tuple(case.coordinates.values()))


def test_a_fact_on_which_processes_agree_is_one_value():
    found = answers(
        *(of(CASES[0], process, launches) for process, launches in enumerate((3, 3, None)))
    )
    assert look_up(found, "launches") == {"samples": [3.0], "number": 1}
    assert look_up(found, "flops") == {"samples": [2.5], "number": 1}
    with pytest.raises(SkipNotImplemented, match="neither JAX nor the back end"):
        look_up(found, "code_bytes")


def test_a_fact_of_a_case_that_failed_or_on_which_processes_disagree_has_failed():
    found = answers(of(CASES[0], 0, launches=3), of(CASES[0], 1, launches=4))
    with pytest.raises(suite.MeasurementFailed, match="launches is 3, 4"):
        look_up(found, "launches")
    about = {"axes": dict(CASES[0].axes), "precision": CASES[0].precision}
    found = answers(failed(**about, reason="ValueError: no"))
    with pytest.raises(suite.MeasurementFailed, match="ValueError: no"):
        look_up(found, "launches")


def test_a_workload_that_is_only_measured_with_a_cache_has_the_facts_of_a_cold_one():
    found = answers(of(CASES[0], scenario="cold", launches=3))
    assert look_up(found, "launches")["samples"] == [3.0]


def test_precisions_are_cases_of_their_own():
    found = answers(*(of(case, launches=n) for n, case in enumerate(CASES)))
    assert [look_up(found, "launches", case)["samples"] for case in CASES] == [[0], [1], [2], [3]]
    assert suite.case_at(Product, (16, "tf32", "forward", "cpu")) == Case(
        {"size": 16}, "forward", "cpu", "tf32"
    )


def test_a_comparison_is_no_ordinary_measurement():
    (side,) = xla([1e3], axes={"size": 8}, precision="ieee")
    assert answers(side)["cases"] == {}


@pytest.mark.parametrize(
    ("bench", "chosen"),
    [
        ([], CASES),
        (["Product"], CASES),
        ([r"track_compile\(16"], CASES[2:]),
        (["nothing", r"\(8, 'ieee', 'forward', 'cpu'\)$"], CASES[:1]),
        (["Other"], []),
        ([r"track_facts\('launches', 16, 'tf32', 'forward', 'cpu'\)"], CASES[3:]),
    ],
)
def test_bench_selects_the_cases_that_asv_will_ask_for(bench, chosen):
    call = AsvCall(bench=tuple(bench))
    assert [case for case in CASES if call.selects(Product, case)] == chosen


@pytest.mark.parametrize(
    ("stage", "target", "reason"),
    [
        ("output_bytes", "cpu", "output_bytes is no work of this process"),
        ("trace", "gpu:h200", "gpu:h200 is compiled for in processes"),
    ],
)
def test_a_profiler_of_what_is_no_work_here_is_given_the_reason(capsys, stage, target, reason):
    assert work_of(Product, Case(target=target), stage)() == 0
    assert f"harness: nothing to profile: {reason}" in capsys.readouterr().err
