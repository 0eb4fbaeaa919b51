"""asv's own benchmarks beside the harness's plugin: what the harness reads of them."""

import json
import warnings

import pytest
from click.testing import CliRunner

import harness
from harness.cli import app
from harness.frame.load import everything
from harness.frame.pairs import Arm, pair
from harness.verdicts.history import series
from tests.asv.project import ENV, MACHINE, PYTHON, Project

PLAIN = """
import json
from pathlib import Path

VALUES = json.loads(Path(__file__).with_name("values.json").read_text())


def track_entries():
    return VALUES["entries"]


def track_disk():
    return VALUES["disk"]


def track_errors():
    return VALUES["errors"]


def track_wait():
    return VALUES["wait"]


track_entries.unit = "entries"
track_disk.unit = "bytes"
track_wait.unit = "seconds"
"""
BEFORE = {"entries": 3, "disk": 4096, "errors": 0, "wait": 1.0}
AFTER = {"entries": 30, "disk": 2048, "errors": 5, "wait": 1.0}


def harness_command(project, *words):
    return CliRunner().invoke(app, [*words, "-r", str(project.results)])


def rows(project, *arms):
    done = harness_command(project, "compare", *arms, "--format", "json")
    frame = json.loads(done.stdout)["rows"]
    return done.exit_code, {
        row["workload"].rpartition("_")[2]: (row["verdict"], row["ratio"], row["unit"])
        for row in frame
    }


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A project of three commits, of which the last changes what is counted."""
    project = Project(tmp_path_factory.mktemp("counted"), {"plain": PLAIN})
    for values in (BEFORE, BEFORE, AFTER):
        project.write("benchmarks/values.json", json.dumps(values))
        project.commit()
        project.run()
    return project


def test_what_is_no_time_is_compared_in_its_own_unit(counted):
    without = ("incomparable", None, "seconds")
    head, before, first = (counted.git("rev-parse", f"HEAD{way}") for way in ("", "~1", "~2"))
    assert rows(counted, before, head) == (
        1,
        {
            "entries": ("more", 10.0, "entries"),
            "disk": ("less", 0.5, "bytes"),
            "errors": ("more", None, "unit"),
            "wait": without,
        },
    )
    code, same = rows(counted, first, before)
    assert code == 0
    assert same.pop("wait") == without
    assert {verdict for verdict, *_ in same.values()} == {"same"}


def test_a_history_has_the_steps_of_what_is_no_time(counted):
    found = harness.history(harness.load(counted.results, all=True))
    changes = found.set_index("workload")[["change", "state", "before_s", "after_s", "unit"]]
    assert changes.sort_index().to_numpy().tolist() == [
        ["less", "new", 4096.0, 2048.0, "bytes"],
        ["more", "new", 3.0, 30.0, "entries"],
        ["more", "new", 0.0, 5.0, "unit"],
    ]
    assert harness_command(counted, "history").exit_code == 0


def test_the_cuts_of_a_history_are_shown_where_each_point_is_of_another_version(
    tmp_path, monkeypatch
):
    project = Project(tmp_path, {"plain": "def track_entries():\n    return 3\n"})
    project.run()
    project.write("benchmarks/plain.py", "def track_entries():\n    return 30\n")
    project.commit()
    project.run()
    assert harness_command(project, "history").exit_code == 4
    shown = harness_command(project, "history", "--cuts")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("1 change point: 1 incomparable")
    # A row that cannot be compared is listed with the reason, and is no traceback.
    # Results of another repository than that of the working directory are only read, in CI as well.
    monkeypatch.setenv("CI", "true")
    assert harness_command(project, "compare", "HEAD~1", "HEAD").exit_code == 4


def test_a_tree_of_asv_before_0_5_is_named_and_read_after_asv_update(tmp_path):
    project = Project(tmp_path, {"plain": "def track_entries():\n    return 3\n"})
    old = project.result_file(env="existing-py3.6")
    project.asv("machine", "--yes")
    old.parent.mkdir(parents=True)
    (old.parent / "machine.json").write_text(json.dumps({"machine": MACHINE, "version": 1}))
    content = {
        "commit_hash": project.head,
        "date": 1_500_000_000_000,
        "params": {"machine": MACHINE, "python": "3.6"},
        "python": "3.6",
        "requirements": {},
        "results": {"plain.track_entries": 3.0, "plain.time_it": 0.5},
        "version": 1,
    }
    old.write_text(json.dumps(content))
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert everything(project.results).attrs["problems"]["old_asv"] == 1
    assert any("`asv update` makes them readable" in str(one.message) for one in shown)
    assert "`asv update` makes it readable" in harness_command(project, "doctor").stdout
    project.asv("update")
    frame = harness.load(project.results)
    assert dict(zip(frame["workload"], frame["value"], strict=True)) == content["results"]


FLAGS = """
import os


def track_fast():
    return 2.0 if "fast_math=true" in os.environ.get("XLA_FLAGS", "") else 1.0


track_fast.unit = "seconds"
"""


def test_flags_tell_results_of_one_commit_apart(tmp_path):
    project = Project(tmp_path, {"plain": FLAGS})
    on, off = (f"--xla_cpu_enable_fast_math={value}" for value in ("true", "false"))
    for flags in ({}, {"XLA_FLAGS": on}, {"XLA_FLAGS": off, "OMP_NUM_THREADS": "1"}):
        project.run(**flags)
    frame = harness.load(project.results, all=True)
    assert frame[["env", "xla_flags", "env_vars", "value"]].to_numpy().tolist() == [
        [ENV, "", "", 1.0],
        [ENV, off, "OMP_NUM_THREADS=1", 1.0],
        [ENV, on, "", 2.0],
    ]
    shown = harness_command(project, "show").stdout
    assert f"Not shown: {ENV}, {ENV} XLA_FLAGS={on}" in shown


def test_like_environments_are_compared_and_what_is_left_out_is_named(tmp_path):
    """Two environments at each commit, measured in opposite order."""
    project = Project(tmp_path, {"plain": FLAGS})
    fast = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    project.run()
    project.run(**fast)
    project.commit()
    project.run(**fast)
    project.run()
    frame = harness.load(project.results, all=True)
    names = frame["commit"].unique()
    pairs = pair(*(Arm(name, frame[frame["commit"] == name]) for name in names), on=())
    ((a, b),) = pairs.pairs
    assert (a["xla_flags"], b["xla_flags"]) == ("", "")
    (other,) = pairs.left_out
    assert (other.arms, other.place["xla_flags"], other.rows) == ("both", fast["XLA_FLAGS"], 1)
    shown = harness_command(project, "compare", "HEAD~1", "HEAD").stdout
    assert f"{ENV} XLA_FLAGS={fast['XLA_FLAGS']} (1 row, in both)" in shown
    points = series(frame)
    assert points.groupby("series")["xla_flags"].unique().map(list).tolist() == [
        [""],
        [fast["XLA_FLAGS"]],
    ]


@pytest.mark.nightly
def test_variables_of_the_matrix_are_columns_in_environments_that_asv_makes(tmp_path):
    project = Project(
        tmp_path,
        {"plain": FLAGS},
        environment_type="virtualenv",
        pythons=[PYTHON],
        matrix={"env_nobuild": {"MODE": ["slow", "fast"], "XLA_FLAGS": [None, "--xla_a=1"]}},
        build_command=[],
        install_command=[],
        uninstall_command=[],
    )
    project.write("benchmarks/__init__.py", "")
    project.asv("run", "HEAD^!", timeout_s=280)
    frame = harness.load(project.results, all=True)
    assert sorted(zip(frame["xla_flags"], frame["env_vars"], strict=True)) == [
        ("", "MODE=fast"),
        ("", "MODE=slow"),
        ("--xla_a=1", "MODE=fast"),
        ("--xla_a=1", "MODE=slow"),
    ]
