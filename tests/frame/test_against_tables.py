import csv
import io
import json
import subprocess
import sys

import pytest

import harness
from harness.frame.against_tables import notes, tables
from tests.frame.comparisons import ceilings, numpy, side, xla
from tests.frame.trees import record, write

FAST = [20e3, 20.4e3, 19.8e3, 20.2e3]
SLOW = [60e3, 61e3, 59e3, 60.5e3]
WRONG = {"comparable": False, "reasons": ["error 0.3 is above 1e-5"]}


@pytest.fixture
def results(tmp_path):
    write(
        tmp_path,
        *ceilings(),
        *xla(FAST),
        *numpy(SLOW),
        *side("fused", FAST, comparison=WRONG),
        *xla(SLOW, axes={"width": 8}, comparison={"labels": ["host-bound"]}),
        *numpy(FAST, axes={"width": 8}),
        *xla(FAST, workload="gelu.Gelu", axes={"size": 5}),
        *numpy(SLOW, workload="gelu.Gelu", axes={"size": 5}),
    )
    return tmp_path


def command(*arguments, code="from harness.cli import main; main()"):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True
    )


def test_a_table_per_workload_with_a_row_per_case_and_baseline(results):
    shown = list(tables(harness.against_baseline(results)))
    assert [heading.partition(" ")[0] for heading, _ in shown] == ["gelu.Gelu", "softmax.Softmax"]
    rows = shown[1][1].to_dict("records")
    assert [(row["case"], row["baseline"], row["verdict"]) for row in rows] == [
        ("width=8", "numpy", "baseline faster"),
        ("width=4096", "numpy", "XLA faster"),
        ("width=4096", "fused", "no ratio"),
    ]
    lost, won, none = rows
    assert won["ratio"] == "3× [2.92, 3.06]"
    assert (won["XLA"], won["baseline's"]) == ("20 ms", "60 ms")
    assert (won["launches"], won["bytes"], won["roofline"]) == ("1 | 5", "1× | 4×", "60% | 20%")
    assert (won["pays after"], lost["pays after"]) == ("3 | 1", "never | never")
    assert (none["ratio"], none["launches"]) == ("–", "1 | –")


def test_notes_give_reasons_and_the_meaning_of_labels(results):
    lines = notes(harness.against_baseline(results))
    case = "softmax.Softmax: width=4096, one thread, fused"
    assert f"{case}: no ratio: fused: error 0.3 is above 1e-5" in lines
    (label,) = [line for line in lines if "host-bound" in line]
    assert label.startswith("xla: host-bound (softmax.Softmax: width=8, one thread, numpy): the")


def test_json_has_null_for_the_unknown_and_a_word_for_never(results):
    rows = json.loads(command("baselines", results, "--format", "json").stdout)
    by = {(row["width"], row["baseline"]): row for row in rows}
    assert by[8, "numpy"]["break_even_cold"] == "never"
    assert by[4096, "fused"]["ratio"] is None
    assert by[4096, "numpy"]["size"] is None


def test_the_command_prints_tables_what_they_mean_and_reasons(results):
    done = command("baselines", results)
    assert done.returncode == 0, done.stderr
    assert "softmax.Softmax · box · commit 01234567" in done.stdout
    assert "above 1 XLA is faster" in done.stdout
    assert "no ratio: fused: error 0.3" in done.stdout


@pytest.mark.parametrize("kind", ["csv", "json", "markdown"])
def test_the_command_prints_selected_workloads_in_other_formats(results, kind):
    done = command("baselines", results, "--select", "gelu", "--format", kind)
    assert (done.returncode, done.stderr) == (0, "")
    if kind == "markdown":
        assert "| size=5 | one | numpy |" in done.stdout
        assert "1 \\| 5" in done.stdout, "what would end a cell is escaped"
        return
    rows = json.loads(done.stdout) if kind == "json" else csv.DictReader(io.StringIO(done.stdout))
    (row,) = rows
    assert (row["workload"], row["verdict"]) == ("gelu.Gelu", "XLA faster")
    assert "width" not in row


def test_a_tree_without_comparisons_is_told_from_a_wrong_call(tmp_path):
    write(tmp_path, record())
    done = command("baselines", tmp_path)
    assert done.returncode == 4
    assert "--with-baselines" in done.stderr
    assert command("baselines", tmp_path / "none").returncode == 2
    assert command("baselines", tmp_path, "--format", "odd").returncode == 2
    done = command("baselines", tmp_path, "--figure", "x.gif")
    assert done.returncode == 2
    assert ".svg, .png or .html" in done.stderr


def test_help_says_how_to_read_a_row():
    assert "above 1 XLA is faster" in command("baselines", "--help").stdout


def test_show_tells_of_a_tree_that_holds_comparisons_only(tmp_path):
    write(tmp_path, *xla(FAST), *numpy(SLOW))
    done = command("show", tmp_path)
    assert done.returncode == 4
    assert "harness baselines" in done.stderr


def test_show_has_the_facts_on_request(tmp_path):
    write(tmp_path, record(0, facts=xla(FAST)[0].facts))
    assert "launches" not in command("show", tmp_path).stdout
    done = command("show", tmp_path, "--facts")
    assert "120 Mflop" in done.stdout, done.stderr


def test_ratios_and_roofline_are_drawn(results, tmp_path):
    pytest.importorskip("vl_convert")
    output = tmp_path / "drawn" / "fusion.svg"
    done = command("baselines", results, "--figure", output)
    assert done.returncode == 0, done.stderr
    drawn = output.read_text()
    assert "width=4096" in drawn
    assert "XLA faster" in drawn
    assert "flop / least byte" in drawn


def test_rows_without_facts_are_drawn_without_a_roofline(tmp_path):
    pytest.importorskip("vl_convert")
    from harness.report.figures.against import chart

    records = [*xla(FAST, facts=None), *numpy(SLOW)]
    drawn = chart(harness.against_baseline(records)).to_dict()
    assert len(drawn["vconcat"]) == 1
