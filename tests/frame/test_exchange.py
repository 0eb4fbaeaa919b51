"""Rows in the formats of other tools; `python -m tools.exports` has the tools read them."""

import json
import statistics

import pytest
from click.testing import CliRunner

from harness.cli import app
from harness.frame.exchange import FORMATS, Tool, document
from harness.frame.load import everything
from harness.stages.sampling import median_interval_ranks
from tests.frame.trees import record, write, write_asv

COMPILE_S = [0.012, 0.010, 0.011, 0.014, 0.013, 0.015]
NAME = "family.Work size=8 compile"


@pytest.fixture
def tree(tmp_path):
    """A workload that six processes compiled, and plain benchmarks of asv at the same commit."""
    ns = [round(value * 1e9) for value in COMPILE_S]
    write(tmp_path, *(record(n, {"compile": [one]}) for n, one in enumerate(ns)))
    return tmp_path


def of(tree, tool):
    text, count, left_out = document(everything(tree), tool)
    return json.loads(text), count, left_out


def test_every_tool_has_a_writer():
    assert set(FORMATS) == {tool.value for tool in Tool}


def test_benchmark_action_has_a_value_in_nanoseconds_and_half_of_the_interval(tree):
    (entry,), *_ = of(tree, "benchmark-action")
    low, high = median_interval_ranks(len(COMPILE_S))
    half = (sorted(COMPILE_S)[high] - sorted(COMPILE_S)[low]) / 2
    assert entry["name"] == NAME
    assert (entry["unit"], round(entry["value"])) == ("ns", 12_500_000)
    assert float(entry["range"].removeprefix("± ")) == pytest.approx(half * 1e9)
    assert entry["extra"].splitlines()[-1] == "n = 6"


def test_bencher_has_latency_in_nanoseconds_and_other_units_as_measures_of_their_own(tree):
    about = {"m.peakmem_x": {"type": "peakmemory", "unit": "bytes"}}
    write_asv(tree, {"m.peakmem_x": [[2048.0], []], "m.track_x": [[0.0], []]}, about)
    metrics, *_ = of(tree, "bencher")
    assert metrics["m.peakmem_x peakmemory"] == {"bytes": {"value": 2048.0}}
    assert metrics["m.track_x track"] == {"value": {"value": 0.0}}
    latency = metrics[NAME]["latency"]
    assert latency["lower_value"] < latency["value"] == pytest.approx(12.5e6)
    assert latency["upper_value"] == pytest.approx(15e6)


def test_pytest_benchmark_has_a_round_per_process_in_seconds(tree):
    found, *_ = of(tree, "pytest-benchmark")
    (one,) = found["benchmarks"]
    stats = one["stats"]
    assert stats["data"] == COMPILE_S
    assert (stats["rounds"], stats["min"], stats["max"]) == (6, 0.010, 0.015)
    assert stats["mean"] == pytest.approx(statistics.fmean(COMPILE_S))
    assert (one["group"], one["params"]) == ("compile", {"size": 8})
    assert found["machine_info"]["node"] == "box"


def test_pyperf_has_a_run_per_process_and_units_that_it_knows(tree):
    write_asv(
        tree, {"m.peakmem_x": [[2048.0], []], "m.track_x": [[3.0], []], "m.time_0": [[0.0], []]}
    )
    found, count, left_out = of(tree, "pyperf")
    one, memory = found["benchmarks"]
    assert [run["values"] for run in one["runs"]] == [[value] for value in COMPILE_S]
    assert (one["metadata"]["unit"], memory["metadata"]["unit"]) == ("second", "byte")
    assert (count, left_out) == (2, 2)  # it has no unit of its own, and no 0


def test_environments_of_one_commit_have_names_of_their_own_and_older_commits_none(tree):
    write(tree, record(0, {"compile": [1]}, commit="f" * 40, started_at_ms=1_600_000_000_000))
    for flags in ("", "--xla_a=1"):
        variables = {"XLA_FLAGS": flags} if flags else {}
        env = "e" + flags
        write_asv(
            tree, {"m.time_x": [[1.0], [], "v", 1_700_000_002_000]}, env=env, env_vars=variables
        )
    entries, *_ = of(tree, "benchmark-action")
    names = [entry["name"] for entry in entries]
    assert names == [NAME, "m.time_x time e", "m.time_x time e--xla_a=1 XLA_FLAGS=--xla_a=1"]


def test_the_command_writes_a_file_and_says_what_it_left_out(tree):
    write_asv(tree, {"m.track_x": [[3.0], []]})
    file = tree / "out.json"
    words = ["export", "-r", str(tree), "--format", "pyperf", "-o", str(file)]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, len(json.loads(file.read_text())["benchmarks"])) == (0, 1)
    assert done.stdout.startswith("1 rows written to ")
    nothing = CliRunner().invoke(app, [*words, "--where", "workload=m.track_x"])
    assert nothing.exit_code == 4
