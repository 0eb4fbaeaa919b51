"""A section is one object: what it says of itself is all that the page needs."""

from __future__ import annotations

import pandas as pd
import pytest

from harness.frame.load import everything
from harness.frame.program_facts import compile_times
from harness.program.compiler.times import CompileTime, CompileTimes
from harness.records.store import Store, store_path
from harness.report import sweep
from harness.report.content import Column, ColumnKind, Content, Section, Table, plain
from harness.report.measured import Measured
from harness.report.page import render
from tests.report.pages import NOTHING, embedded, reported, table
from tests.report.synthetic import frame
from tests.verdicts.arms_of import records


def workloads(measured):
    if measured.newest.empty:
        return None
    rows = measured.newest.groupby("workload", as_index=False).agg(rows=("stage", "size"))
    table = Table(
        "sizes",
        "Rows of each workload",
        (*plain("workload"), Column("rows", "n", ColumnKind.COUNT)),
        rows,
    )
    return Content(tables=(table,), shown=("sizes",))


ABOUT = {"name": "sizes", "title": "Sizes", "intro": "How much was measured?", "content": workloads}


@pytest.fixture
def page_with(monkeypatch):
    def made(section, rows):
        monkeypatch.setattr(sweep, "SECTIONS", (*sweep.SECTIONS, section))
        return reported(rows)

    return made


def test_a_section_that_is_added_is_on_the_page_with_its_table_and_its_answer(page_with):
    answer = (9, "How much?", lambda measured: (f"{len(measured.newest)} rows.",))
    report = page_with(Section(**ABOUT, answer=answer), frame(["a.A"]))
    page = render(report)
    assert '<h2 id="sizes-title">Sizes</h2>' in page
    assert '<div class="table" data-table="sizes"></div>' in page
    assert embedded(page)["tables"]["sizes"]["values"]["rows"] == [20]
    assert report.answers[-1] == ("How much?", ("20 rows.",), "sizes")


def test_a_section_without_data_says_what_fills_it_or_is_left_out(page_with):
    empty = frame(["a.A"]).iloc[:0]
    assert page_with(Section(**ABOUT), empty).sections[-1].name != "sizes"
    told = Section(**ABOUT, missing="Nothing was measured.", command="harness run")
    page = render(page_with(told, pd.DataFrame(empty)))
    assert "Nothing was measured. To fill this: <code>harness run</code>" in page


def test_a_section_that_says_what_is_missing_but_no_command_cannot_be_made():
    with pytest.raises(TypeError, match="The section 'sizes' lacks a command"):
        Section(**ABOUT, missing="Nothing.")


def test_passes_of_xla_are_a_bar_per_case_with_what_is_left_of_each_group(tmp_path):
    own = records(axes={"size": 8})
    groups = [CompileTime("fusion", "", "", 0.3, 0.3), CompileTime("layout", "", "", 0.1, 0.1)]
    passes = [CompileTime("fusion", "", "priority-fusion", 0.2, 0.2, 3)]
    own[0].compile_times = CompileTimes(groups, passes)
    Store(store_path(tmp_path, "box", own[0].commit, own[0].env)).append(own)
    report = sweep.report(Measured(everything(tmp_path), NOTHING, (), compile_times(tmp_path)))
    data = table(report, "compiles").data
    told = dict(zip(data["group"] + " " + data["pass"], data["wall_s"], strict=True))
    assert told == pytest.approx(
        {
            "fusion priority-fusion": 0.2,
            "fusion other passes of the group": 0.1,
            "layout other passes of the group": 0.1,
        }
    )
    assert data["share"].sum() == pytest.approx(1)
    assert 'data-figure="compiles"' in render(report)
    assert 'data-figure="compiles"' not in render(reported(frame(["a.A"])))
