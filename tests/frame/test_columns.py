"""A frame is as the page says, and a frame of something else is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness.errors import UsageError
from harness.frame.columns import COLUMNS, DTYPES, table
from tests.frame import trees

PAGE = Path(__file__).parents[2] / "docs" / "frame.md"


def test_the_page_has_the_table_of_the_schema():
    assert table() in PAGE.read_text(encoding="utf-8"), (
        "docs/frame.md: put the table of `python -m harness.frame.columns` there"
    )


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
