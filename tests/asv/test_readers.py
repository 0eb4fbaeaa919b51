"""What asv imports and forks: it must know nothing of a JAX backend."""

import subprocess
import sys

import pytest

from harness.asv.call import AsvCall
from harness.asv.verbs import call_of
from harness.declare.workload import Case, Workload, enumerate_cases, spec
from tests.asv.project import SCALE, Project

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
    from harness.asv import suite

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
    from harness.asv import suite
    from harness.declare import workload

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


def test_bench_selects_the_cases_that_asv_will_ask_for():
    from harness import Workload, spec

    class Sized(Workload):
        sweep = {"size": [8, 16]}

        def inputs(self, size):
            return spec((size,))

        @staticmethod
        def function(x):
            return x

    cases = [Case({"size": size}, "forward", target) for size in (8, 16) for target in ("cpu",)]

    def selected(*bench):
        call = AsvCall(bench=bench)
        return [case.axes["size"] for case in cases if call.selects(Sized, case)]

    assert selected() == [8, 16]
    assert selected("Sized") == [8, 16]
    assert selected(r"track_compile\(16") == [16]
    assert selected("nothing", r"\(8, 'forward', 'cpu'\)$") == [8]
    assert selected("Other") == []
