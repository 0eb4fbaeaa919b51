"""One quick run of a suite that holds what users write and what they get wrong.

A copy of the project goes on from there, to a second commit.
"""

import json
import math
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest

from harness import targets
from harness.asv.metrics import FACT_METRICS
from harness.stages.registry import values_ns
from tests.asv.project import ENV, JAX, MACHINE, PYTHON, Project, is_na, row

SHOWN = ("trace", "compile")
"""What asv reads of most workloads: each reader is a process of its own."""
WHOLE = ("family.Concrete.", "precise.")
"""The beginnings of the names of those of which it reads all."""

PRESENT = [name for name in ("cpu", "gpu", "tpu") if not targets.find(name).absent()]

STAGES = {
    f"track_{stage}" for stage in ("trace", "lower", "compile", "dispatch", "execute", "compute")
}

FAMILY = """
from abc import abstractmethod

import jax.numpy as jnp

from harness import Workload, spec


def repeat(x, times):
    for _ in range(times):
        x = jnp.sin(x)
    return x


class Base(Workload):
    def inputs(self):
        return spec((8,))

    @staticmethod
    @abstractmethod
    def function(x): ...


class Concrete(Base):
    targets = ("cpu",)

    @staticmethod
    def function(x):
        return jnp.sin(x)


class Deep(Concrete):
    sweep = {"depth": [200, 2]}
    static = ("depth",)
    function = staticmethod(lambda x, depth: repeat(x, depth))


# Neither this nor the class above has a `def` of its own.
class Heir(Concrete): ...


Made = type("Made", (Concrete,), {"function": staticmethod(abs), "__module__": __name__})
AlsoMade = type("AlsoMade", (Made,), {"__module__": __name__})
"""

SHAPES = """
import jax.numpy as jnp

from benchmarks.family import Concrete, Base  # asv finds imported classes too
from harness import Workload, spec


class Shapes(Workload):
    sweep = {
        "shape": [(2, 3), ((4, 1), "x")],
        "größe": ["naïve", "a 'quoted', (x)", 1.5, True],
    }
    static = ("größe",)

    def inputs(self, shape):
        return spec(shape if shape[-1] != "x" else shape[0])

    def skip(self, shape, größe, target, **case):
        if größe == "naïve" and shape == (2, 3):
            return "too naïve"
        if target == "tpu":
            raise RuntimeError("nobody asks about what this machine lacks")

    @staticmethod
    def function(x, größe):
        return jnp.cos(x)
"""

PRECISE = """
import sys
from pathlib import Path

from harness import Workload, spec
from harness.asv import suite

with open(Path.home() / "imported", "a") as file:
    print(*sys.argv[1:2], file=file)

suite.install(facts=True)  # of the workloads from here on


class Product(Workload):
    sweep = {"size": [8]}
    precisions = ("ieee", "tf32")
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size, size)), spec((size, size))

    @staticmethod
    def function(x, y):
        return x @ y
"""

TROUBLE = """
from harness import Workload, spec


class Half(Workload):
    sweep = {"good": ["yes", "no", "later"]}
    static = ("good",)
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x, good):
        if good == "later":
            raise NotImplementedError("left for later")
        if good == "no":
            raise ValueError("only good ones work")
        return x + 1


class Wrong(Half):
    sweep = {"size": []}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    modules = {"family": FAMILY, "shapes": SHAPES, "precise": PRECISE, "trouble": TROUBLE}
    return Project(folder, modules)


@pytest.fixture(scope="module")
def everything(project):
    """What asv says of all workloads."""
    chosen = [rf"track_({'|'.join(SHOWN)}|declaration)", *(f"^{name}" for name in WHOLE)]
    benches = [word for one in chosen for word in ("-b", one)]
    return project.run("--quick", "--show-stderr", *benches, code=2, HARNESS_FIRST_CALLS="0")


@pytest.fixture(scope="module")
def later(project, everything, tmp_path_factory):
    """A copy of the project with a second commit, which changes one workload; `HEAD^`, `HEAD`."""
    copy = Project(tmp_path_factory.mktemp("later"), {})
    shutil.rmtree(copy.folder)
    shutil.copytree(project.folder, copy.folder)
    copy.before = copy.benchmarks()
    copy.write("benchmarks/family.py", f"# A comment moves every line.\n{FAMILY}")
    copy.write("benchmarks/precise.py", PRECISE.replace("x @ y", "x @ y + 1"))
    copy.commit()
    copy.said = copy.run("--quick", "-b", r"^family\.Concrete\.", "-b", r"^precise\.")
    return copy


def family(project, name, stage="compile"):
    return project.result(f"family.{name}.track_{stage}")


def test_a_run_leaves_a_results_file_named_by_versions(project, everything):
    assert project.result_file().name == f"{project.head[:8]}-existing-py{PYTHON}-jax{JAX}.json"
    stored = json.loads(project.result_file().read_text())
    installed = {name: metadata.version(name) for name in ("jax", "jaxlib")}
    assert stored["requirements"] == installed
    assert {**stored["params"], **installed} == stored["params"]


def test_no_path_of_this_machine_is_in_the_results(project, everything):
    paths = [str(project.folder), str(project.home), sys.prefix, sys.executable]
    paths.append(str(Path(sys.executable).resolve()))
    for file in project.results.rglob("*"):
        assert MACHINE in file.relative_to(project.results).parts or file.name == "benchmarks.json"
        if file.is_file() and file.suffix != ".jsonl":
            assert not [path for path in paths if path in file.read_text()], file
    for record in project.records():
        places = (str(project.home), *((str(project.folder), sys.prefix) * (record.status == "ok")))
        assert not [place for place in places if place in str(record)]


@pytest.mark.nightly
def test_b_measures_only_what_it_names(later):
    assert {name.split(".track_")[0] for name in later.names()} == {
        *("family.Concrete", "precise.Product")
    }


def test_every_stage_of_every_concrete_workload_is_a_benchmark(project, everything):
    """Once, where it is declared: not where it is imported; and none of an abstract one is."""
    workloads = {f"family.{name}" for name in ("Concrete", "Deep", "Heir", "Made", "AlsoMade")}
    workloads |= {"shapes.Shapes", "precise.Product", "trouble.Half"}
    every = {f"{workload}.{stage}" for workload in workloads for stage in STAGES}
    with_facts = ("precise.Product", "shapes.Shapes", "trouble.Half")
    every |= {f"{workload}.track_facts" for workload in with_facts}
    every |= {"trouble.Wrong.track_declaration"}
    assert set(project.benchmarks()) == every
    assert project.names() == {
        name
        for name in project.benchmarks()
        if name.startswith(WHOLE)
        or name.partition(".track_")[2].startswith((*SHOWN, "declaration"))
    }


def test_each_workload_has_a_setup_cache_of_its_own(project, everything):
    keys = {}
    for name, about in project.benchmarks().items():
        if "setup_cache_key" in about:
            keys.setdefault(name.rpartition(".")[0], set()).add(about["setup_cache_key"])
    assert all(len(found) == 1 for found in keys.values()), "one pass measures all stages"
    assert len(set.union(*keys.values())) == len(keys) == 8


def test_no_interpreter_is_started_for_a_setup_cache(project, everything):
    verbs = (project.home / "imported").read_text().split()
    assert "run_server" in verbs
    assert "setup_cache" not in verbs


AWAKE = """
import sys

import jax.numpy as jnp

from harness import Workload

X = jnp.ones((64, 64)) @ jnp.ones((64, 64))


class Awake(Workload):
    targets = ("cpu",)

    def skip(self, **case):
        return "too small" if (X @ X).sum() < 0 else None

    def inputs(self):
        return (X,)

    @staticmethod
    def function(x):
        return jnp.sin(x)


class Plain:
    def setup_cache(self):
        return sys.argv[1]

    def track_is_own(self, verb):
        return int(verb == "setup_cache")
"""


def test_where_importing_wakes_jax_a_setup_cache_has_an_interpreter_of_its_own(tmp_path):
    project = Project(tmp_path, {"awake": AWAKE})
    project.run("--quick", "-b", "track_(trace|is_own)", HARNESS_FIRST_CALLS="0")
    ((trace,), (is_own,)) = (
        project.result(f"awake.{name}")["result"]
        for name in ("Awake.track_trace", "Plain.track_is_own")
    )
    assert trace > 0
    assert is_own == 1


def test_each_workload_gets_the_numbers_of_its_own_records(project, everything):
    for name in ("Concrete", "Heir", "Made", "AlsoMade"):
        for stage in SHOWN:
            (found,) = family(project, name, stage)["result"]
            assert [found] == project.values_s(f"family.{name}", stage), (name, stage)


def test_each_case_gets_its_own_number_whatever_order_they_were_measured_in(project, everything):
    by_case = family(project, "Deep", "trace")["by_case"]
    own = {r.axes["depth"]: values_ns(r.stages)["trace"] for r in project.records("family.Deep")}
    assert set(own) == {200, 2}
    for depth, ns in own.items():
        assert by_case[f"{depth}", "'forward'", "'cpu'"] == ns / 1e9


def test_params_are_the_axes_and_then_transform_and_target(project, everything):
    about = project.benchmarks()["shapes.Shapes.track_execute"]
    assert about["param_names"] == ["shape", "größe", "transform", "target"]
    assert about["params"] == [
        ["(2, 3)", "((4, 1), 'x')"],
        ["'naïve'", "\"a 'quoted', (x)\"", "1.5", "True"],
        ["'forward'"],
        [repr(target) for target in PRESENT],
    ]


def test_values_are_seconds_for_every_kind_of_axis_value_and_what_is_skipped_has_none(
    project, everything
):
    about = project.benchmarks()["shapes.Shapes.track_compile"]
    assert (about["unit"], about["type"]) == ("seconds", "time")
    by_case = project.result("shapes.Shapes.track_compile")["by_case"]
    measured = [v for (_, _, _, target), v in by_case.items() if target == "'cpu'" and not is_na(v)]
    assert len(measured) == 7
    assert sorted(measured) == sorted(project.values_s("shapes.Shapes", "compile"))
    assert is_na(by_case["(2, 3)", "'naïve'", "'forward'", "'cpu'"])
    reasons = {r.reason for r in project.records("shapes.Shapes") if r.status == "skipped"}
    assert reasons == {"too naïve"}


def test_what_is_not_available_is_shown_so_and_does_not_fail_the_run(later):
    assert "n/a" in row(later.said, "precise.Product.track_compile")
    assert "failed" not in later.said


def test_records_stand_beside_the_results_and_quick_is_one_process_and_one_pass(
    project, everything
):
    (file,) = (project.results / MACHINE / "records").iterdir()
    assert file.stem == project.result_file().stem
    for record in project.records():
        assert (record.machine, record.env, record.commit) == (MACHINE, ENV, project.head)
        assert record.dirty == ""
    found = project.records("family.Concrete")
    assert [(r.effort, r.protocol.split()[0]) for r in found] == [("quick", "1")]
    assert len(found[0].stages["compile"].samples_ns) == 1


def test_a_case_that_fails_is_failed_with_the_reason_and_its_siblings_are_not(project, everything):
    by_case = project.result("trouble.Half.track_trace")["by_case"]
    yes, no, later = (by_case[f"'{good}'", "'forward'", "'cpu'"] for good in ("yes", "no", "later"))
    assert yes > 0
    assert no is later is None
    assert "failed" in row(everything, "trouble.Half.track_trace")
    assert "MeasurementFailed: " in everything
    assert "ValueError: only good ones work" in everything
    assert "NotImplementedError: left for later" in everything  # of asv's own it is "n/a"


def test_a_wrong_declaration_fails_alone_and_says_what_is_wrong(project, everything):
    assert project.result("trouble.Wrong.track_declaration")["result"] == [None]
    assert "axis 'size' has no values" in everything
    assert {n for n in project.names() if ".Wrong." in n} == {"trouble.Wrong.track_declaration"}


def test_one_reader_has_the_facts_where_a_suite_wants_them_and_shows_what_the_records_hold(
    project, everything
):
    about = project.benchmarks()["precise.Product.track_facts"]
    assert (about["type"], about["unit"]) == ("track", "")
    assert about["param_names"] == ["fact", "size", "precision", "transform", "target"]
    assert about["params"][0] == [repr(fact) for fact in FACT_METRICS]
    times = project.result("precise.Product.track_compile")["by_case"]
    records = {r.precision: r for r in project.records("precise.Product")}
    assert set(records) == {"ieee", "tf32"}
    assert records["tf32"].status == "skipped"  # a CPU has one precision
    key = ("8", "'ieee'", "'forward'", "'cpu'")
    assert times[key] == records["ieee"].stages["compile"].samples_ns[0] / 1e9
    shown = project.result("precise.Product.track_facts")["by_case"]
    for fact in FACT_METRICS:
        known, value = getattr(records["ieee"].facts, fact), shown[repr(fact), *key]
        assert math.isnan(value) if known is None else value == known
        assert math.isnan(shown[repr(fact), "8", "'tf32'", "'forward'", "'cpu'"])


def test_asv_check_finds_nothing_wrong(project):
    assert "No problems found" in project.asv("check", "-E", "existing")


def test_readers_take_what_was_measured_and_not_given_to_asv_yet_when_asv_spawns_them(
    project, everything
):
    lines = len(project.records())
    project.run("--quick", "--launch-method", "spawn", "-b", "Heir.track_lower")
    assert project.result("family.Heir.track_lower")["result"] == project.values_s(
        "family.Heir", "lower"
    )
    assert len(project.records()) == lines


def test_a_version_changes_with_its_own_workload_only(later):
    before, after = later.before, later.benchmarks()
    kept, changed = "family.Concrete.track_trace", "precise.Product.track_trace"
    assert before[kept]["version"] == after[kept]["version"]
    assert before[kept]["setup_cache_key"] != after[kept]["setup_cache_key"]
    assert before[changed]["version"] != after[changed]["version"]


def test_every_commit_has_results_and_records_of_its_own(later):
    commits = later.git("rev-parse", "HEAD^"), later.head
    assert all(later.result_file(commit=commit).is_file() for commit in commits)
    assert sorted(r.commit for r in later.records("family.Concrete")) == sorted(commits)


def test_compare_shows_the_workload_that_stayed_and_sets_the_changed_one_apart(later):
    said = later.asv("compare", "HEAD^", "HEAD", "--split", "--factor", "1000")
    same, _, apart = said.partition("Benchmarks that are not comparable:")
    assert len(re.findall(r"family\.Concrete\.track_", same)) == len(STAGES)
    assert "precise.Product" not in same
    rows = 2 * (len(STAGES) + len(FACT_METRICS))
    assert len(re.findall(r"\| x +\|.*precise\.Product\.track_", apart)) == rows
    assert "family.Concrete" not in apart


def test_show_prints_the_stages_as_times(later):
    said = later.asv("show", "HEAD")
    assert MACHINE in said
    assert {name for name in STAGES if f"family.Concrete.{name}" in said} == STAGES
    assert len(re.findall(r"\d(?:ns|μs|us|ms|s)\b", said)) >= 10


def test_publish_draws_both_commits_and_shows_the_source_as_code(later):
    said = later.asv("publish")
    assert "KeyError" not in said
    assert "Skipping" not in said
    html = later.folder / ".asv" / "html"
    about = json.loads((html / "index.json").read_text())["benchmarks"]
    concrete = about["family.Concrete.track_compile"]
    assert concrete["unit"] == "seconds"
    for shown in ("class Concrete(Base):", "def function(x):\n        return jnp.sin(x)"):
        assert shown in concrete["code"]
    assert "return jnp.cos(x)" in about["shapes.Shapes.track_trace"]["code"]
    (graph,) = (html / "graphs" / "summary").glob("family.Concrete.track_compile.json")
    points = json.loads(graph.read_text())
    assert len(points) == 2
    assert all(value > 0 for _, value in points)
