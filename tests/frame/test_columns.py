"""A frame is as the page says, and a frame of something else is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness.errors import UsageError
from harness.frame.columns import COLUMNS, DTYPES
from harness.program.facts import FACTS
from tests.frame import trees

PAGE = Path(__file__).parents[2] / "docs" / "frame.md"


def test_the_page_has_every_column_in_order_with_its_type():
    head = "| column | dtype | unit | meaning |"
    table = PAGE.read_text(encoding="utf-8").partition(head)[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split(" | ")] for line in table.splitlines()[2:]]
    types = {name: DTYPES[kind] for name, kind in COLUMNS.items()}
    assert [(name.strip("|` "), dtype) for name, dtype, *_ in rows] == [*types.items()]
    meanings = {name.strip("|` "): meaning.rstrip(" |") for name, *_, meaning in rows}
    assert {name: meanings[name] for name in FACTS} == {
        name: fact.meaning for name, fact in FACTS.items()
    }


def test_a_frame_has_the_dtypes_of_the_schema(tmp_path):
    trees.write(tmp_path, trees.record(), trees.failed(1, "ValueError: no"))
    for frame in (harness.load(tmp_path), harness.load(tmp_path, all=True).head(0)):
        assert [str(frame[name].dtype) for name in COLUMNS] == [
            DTYPES[kind] for kind in COLUMNS.values()
        ]


def test_lists_that_became_text_are_refused(tmp_path):
    trees.write(tmp_path, trees.record())
    frame = harness.load(tmp_path)
    text = frame.assign(samples=frame["samples"].map(str))
    with pytest.raises(UsageError, match=r"The column 'samples' holds '\[.*', expected a list"):
        harness.phases(text)
