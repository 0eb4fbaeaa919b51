"""asv's own commands on the results of two commits, of which the second changes one workload."""

import json
import re

import pytest

from harness.asv.metrics import FACT_METRICS
from harness.stages.registry import CASE_STAGES
from tests.asv.project import MACHINE, Project

READERS = len(CASE_STAGES) + len(FACT_METRICS)

TWO = """
from harness import Workload, spec


class Kept(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return 2 * x


class Changed(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return 3 * x
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project measured at two commits; `HEAD^` and `HEAD`."""
    project = Project(tmp_path_factory.mktemp("commits"), {"two": TWO})
    project.run("--quick")
    project.before = project.benchmarks()
    changed = TWO.replace("3 * x", "3 * x + 1")
    project.write("benchmarks/two.py", f"# A comment moves every line.\n{changed}")
    project.commit()
    project.run("--quick")
    return project


def test_a_version_changes_with_its_own_workload_only(project):
    before, after = project.before, project.benchmarks()
    kept, changed = "two.Kept.track_trace", "two.Changed.track_trace"
    assert before[kept]["version"] == after[kept]["version"]
    assert before[kept]["setup_cache_key"] != after[kept]["setup_cache_key"]
    assert before[changed]["version"] != after[changed]["version"]


def test_every_commit_has_results_and_records_of_its_own(project):
    previous = project.git("rev-parse", "HEAD^")
    assert project.result_file(commit=previous).is_file()
    assert project.result_file().is_file()
    assert {r.commit for r in project.records("two.Kept")} == {previous, project.head}
    assert len(project.records("two.Kept")) == 2


def test_compare_shows_the_workload_that_stayed_and_sets_the_changed_one_apart(project):
    said = project.asv("compare", "HEAD^", "HEAD", "--split", "--factor", "1000")
    same, _, apart = said.partition("Benchmarks that are not comparable:")
    assert len(re.findall(r"two\.Kept\.track_", same)) == READERS
    assert "two.Changed" not in same
    assert len(re.findall(r"\| x +\|.*two\.Changed\.track_", apart)) == READERS
    assert "two.Kept" not in apart


def test_show_prints_the_stages_as_times(project):
    said = project.asv("show", "HEAD")
    assert MACHINE in said
    for stage in ("trace", "lower", "compile", "dispatch", "execute"):
        assert f"two.Kept.track_{stage}" in said
    assert len(re.findall(r"\d(?:ns|μs|us|ms|s)\b", said)) >= 10


def test_publish_draws_both_commits_and_shows_the_source(project):
    said = project.asv("publish")
    assert "KeyError" not in said
    html = project.folder / ".asv" / "html"
    about = json.loads((html / "index.json").read_text())["benchmarks"]["two.Kept.track_compile"]
    assert about["unit"] == "seconds"
    assert "def function(x):\n        return 2 * x" in about["code"]
    (graph,) = (html / "graphs" / "summary").glob("two.Kept.track_compile.json")
    points = json.loads(graph.read_text())
    assert len(points) == 2
    assert all(value > 0 for _, value in points)
