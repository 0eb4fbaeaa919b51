"""A section is one object: what it says of itself is all that the page needs."""

from __future__ import annotations

import pytest

from harness.frame.load import everything
from harness.frame.program_facts import compile_times
from harness.output.report import sweep
from harness.output.report.content import Content, Section
from harness.output.report.measured import Measured
from harness.output.report.page import render
from harness.program.compiler.times import CompileTime, CompileTimes
from harness.records.store import Store, store_path
from tests.output.report.pages import NOTHING, reported, table
from tests.output.report.synthetic import frame
from tests.verdicts.arms_of import records

ABOUT = {"name": "sizes", "title": "Sizes", "intro": "How much was measured?"}


def test_a_section_has_an_answer_or_says_what_fills_it_or_is_left_out(monkeypatch):
    """That it is on the page with its table: `tests/test_added.py`."""
    answer = (9, "How much?", lambda measured: (f"{len(measured.newest)} rows.",))
    told = {"missing": "Nothing was measured.", "command": "harness run"}
    for more, answers, page_says in (
        ({"content": lambda measured: Content(), "answer": answer}, [("20 rows.",)], "20 rows."),
        ({"content": lambda measured: None, **told}, [], "To fill this: <code>harness run</code>"),
        ({"content": lambda measured: None}, [], None),
    ):
        with monkeypatch.context() as only:
            only.setattr(sweep, "SECTIONS", (*sweep.SECTIONS, Section(**ABOUT, **more)))
            report = reported(frame(["a.A"]))
        assert [said for question, said, _ in report.answers if question == "How much?"] == answers
        assert (report.sections[-1].name == "sizes") == (page_says is not None)
        page = render(report)
        assert page_says is None or page_says in page
        assert ("Nothing was measured." in page) == ("missing" in more)


def test_a_section_that_says_what_is_missing_but_no_command_cannot_be_made():
    with pytest.raises(TypeError, match="The section 'sizes' lacks a command"):
        Section(**ABOUT, content=lambda measured: None, missing="Nothing.")


@pytest.mark.nightly
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
