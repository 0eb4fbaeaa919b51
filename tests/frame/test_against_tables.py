import csv
import io
import json

import pytest

import harness
from harness.output.against import notes, tables
from tests.frame.comparisons import FAST, SLOW, WRONG, ceilings, numpy, side, xla
from tests.frame.trees import record, write


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write(
        folder,
        *(*ceilings(), *xla(FAST), *numpy(SLOW), *side("fused", FAST, comparison=WRONG)),
        *xla(SLOW, axes={"width": 8}, comparison={"labels": ["host-bound"]}),
        *numpy(FAST, axes={"width": 8}),
        *xla(FAST, workload="gelu.Gelu", axes={"size": 5}),
        *numpy(SLOW, workload="gelu.Gelu", axes={"size": 5}),
    )
    return folder


def test_a_table_per_workload_with_a_row_per_case_and_baseline(results):
    shown = list(tables(harness.against_baseline(results)))
    assert [heading.partition(" ")[0] for heading, _ in shown] == ["gelu.Gelu", "softmax.Softmax"]
    lost, won, none = rows = shown[1][1].to_dict("records")
    assert [(row["case"], row["baseline"], row["verdict"]) for row in rows] == [
        ("width=8", "numpy", "baseline faster"),
        ("width=4096", "numpy", "XLA faster"),
        ("width=4096", "fused", "no ratio"),
    ]
    assert won["ratio"] == "3× [2.92, 3.06]"
    assert (won["XLA"], won["baseline's"]) == ("20 ms", "60 ms")
    assert (won["launches"], won["bytes"], won["roofline"]) == ("1 | 5", "1× | 4×", "60 % | 20 %")
    assert (won["pays after"], lost["pays after"]) == ("3 | 1", "never | never")
    assert (none["ratio"], none["launches"]) == ("–", "1 | –")


def test_two_nights_of_one_commit_have_headings_of_their_own():
    nights = [one for night in "ab" for one in (*xla(FAST, night=night), *numpy(SLOW, night=night))]
    (first, _), (second, _) = tables(harness.against_baseline(nights))
    assert (" · night a · " in first, " · night b · " in second) == (True, True)


def test_notes_give_reasons_and_the_meaning_of_labels(results):
    lines = notes(harness.against_baseline(results))
    case = "softmax.Softmax: width=4096, one thread, fused"
    assert f"{case}: no ratio: fused: error 0.3 is above 1e-5" in lines
    (label,) = [line for line in lines if "host-bound" in line]
    assert label.startswith("xla: host-bound (softmax.Softmax: width=8, one thread, numpy): the")


def test_the_command_prints_tables_what_they_mean_and_reasons(command, results):
    code, out, err = command("baselines", "-r", results)
    assert code == 0, err
    answer, _ = out.split("\n", 1)
    assert answer == "XLA is faster in 2 of 4 comparisons, slower in 1; 1 has no ratio."
    for said in (
        "softmax.Softmax · box · commit 01234567",
        "above 1 XLA is faster",
        "fused: error",
    ):
        assert said in out


def test_the_command_prints_other_formats(command, results):
    rows = json.loads(command("baselines", "-r", results, "--format", "json")[1])
    by = {(row["width"], row["baseline"]): row for row in rows}
    assert by[8, "numpy"]["break_even_cold"] == "never"
    assert by[4096, "fused"]["ratio"] is by[4096, "numpy"]["size"] is None

    of_gelu = ("baselines", "-r", results, "--select", "gelu", "--format")
    (row,) = csv.DictReader(io.StringIO(command(*of_gelu, "csv")[1]))
    assert (row["workload"], row["verdict"]) == ("gelu.Gelu", "XLA faster")
    assert "width" not in row
    code, out, err = command(*of_gelu, "markdown")
    assert (code, err) == (0, "")
    assert "size=5 | numpy | one | 20 ms |" in out
    assert "1 \\| 5" in out, "what would end a cell is escaped"


def test_a_tree_without_comparisons_is_told_from_a_wrong_call(command, tmp_path):
    write(tmp_path, record())
    for words, code, said in (
        ((tmp_path,), 4, "--with-baselines"),
        ((tmp_path / "none",), 2, ""),
        ((tmp_path, "--format", "odd"), 2, ""),
        ((tmp_path, "--figure", "x.gif"), 2, ".svg, .png or .html"),
    ):
        ended, _, err = command("baselines", "-r", *words)
        assert (ended, said in err) == (code, True)


def test_show_tells_of_a_tree_that_holds_comparisons_only(command, tmp_path):
    write(tmp_path, *xla(FAST), *numpy(SLOW))
    code, _, err = command("show", "-r", tmp_path)
    assert (code, "harness baselines" in err) == (4, True)


def test_show_has_the_facts_on_request(command, tmp_path):
    write(tmp_path, record(0, facts=xla(FAST)[0].facts))
    assert "launches" not in command("show", "-r", tmp_path)[1]
    assert "120 Mflop" in command("show", "-r", tmp_path, "--facts")[1]


def test_ratios_and_roofline_are_drawn_and_without_facts_no_roofline(command, results, tmp_path):
    pytest.importorskip("vl_convert")
    from harness.output.report.sections.against import chart

    output = tmp_path / "drawn" / "fusion.svg"
    assert command("baselines", "-r", results, "--figure", output)[0] == 0
    drawn = output.read_text()
    for said in ("width=4096", "XLA faster", "flop / least byte"):
        assert said in drawn
    without = chart(harness.against_baseline([*xla(FAST, facts=None), *numpy(SLOW)]))
    assert len(without.to_dict()["vconcat"]) == 1
