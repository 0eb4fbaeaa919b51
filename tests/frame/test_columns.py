"""What is said of the columns is true of every frame, and said once."""

from pathlib import Path

import harness
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
