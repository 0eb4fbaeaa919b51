"""A frame is as the page says; what has been through pandas gives the same answers."""

from __future__ import annotations

import io
import pickle
import tempfile
from pathlib import Path

import pandas as pd
import pytest

import harness
from harness.errors import UsageError
from harness.frame.columns import COLUMNS, DTYPES, table
from harness.frame.export import write
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


def through_our_export(frame):
    with tempfile.TemporaryDirectory() as folder:
        write(frame, Path(folder, "nights"))
        return pd.read_parquet(Path(folder, "nights"))


def through_csv(frame, **options):
    return pd.read_csv(io.StringIO(frame.to_csv(index=False)), low_memory=False, **options)


TREATED = {
    "a helper column": lambda frame: frame.assign(ms=frame["value"] * 1e3, note="x"),
    "reset_index": lambda frame: frame.reset_index(),
    "another order of rows": lambda frame: frame.sample(frac=1, random_state=1),
    "another order of columns": lambda frame: frame[frame.columns[::-1]],
    "one label for all rows": lambda frame: frame.set_axis([0] * len(frame)),
    "a column as index": lambda frame: frame.set_index("commit", drop=False),
    "an index of several": lambda frame: frame.set_index(["workload", "stage"], drop=False),
    "convert_dtypes": lambda frame: frame.convert_dtypes(),
    "categories": lambda frame: frame.astype({"workload": "category", "stage": "category"}),
    "objects": lambda frame: frame.astype(object),
    "Parquet": lambda frame: pd.read_parquet(io.BytesIO(frame.to_parquet())),
    "pickle": lambda frame: pickle.loads(pickle.dumps(frame)),
    "our export, read by pandas": through_our_export,
    "CSV": through_csv,
    "CSV, empty text kept": lambda frame: through_csv(frame, keep_default_na=False),
}

JAX = "jax=0.11.2", "jax=0.12.0.1"

QUESTIONS = {
    "compare": lambda frame: harness.compare(frame, *JAX),
    "phases": harness.phases,
    "recompile_map": harness.recompile_map,
}


@pytest.fixture(scope="module")
def frame():
    whole = harness.load("results", all=True)
    few = whole[whole["workload"].str.contains("Softmax|UnrolledLoop")]
    return few[few["target"].eq("cpu") | few["width"].eq(128)]


@pytest.fixture(scope="module")
def answers(frame):
    return {name: question(frame) for name, question in QUESTIONS.items()}


def sorted_rows(answer):
    """Rows in an order of their own, as the order of what is asked about decides theirs."""
    texts = answer[sorted(answer.columns)].map(
        lambda cell: f"{cell:.9g}" if isinstance(cell, float) else repr(cell)
    )
    return sorted(map(tuple, texts.itertuples(index=False)))


OFTEN = ("a helper column", "reset_index", "a column as index", "objects", "Parquet", "CSV")
"""What is done to frames most; the rest is looked at by night."""


@pytest.mark.parametrize("treated", ["one label for all rows", "an index of several"])
def test_filters_leave_the_same_rows_whatever_their_labels_are(frame, answers, treated):
    found = harness.compare(TREATED[treated](frame), *JAX, stages=["compile"])
    expected = answers["compare"]
    assert sorted_rows(found) == sorted_rows(expected[expected["stage"] == "compile"]) != []


@pytest.mark.parametrize(
    "treated",
    [one if one in OFTEN else pytest.param(one, marks=pytest.mark.nightly) for one in TREATED],
)
def test_what_has_been_through_pandas_gives_the_same_answers(frame, answers, treated):
    given = TREATED[treated](frame)
    for name, expected in answers.items():
        if name == "recompile_map" and "order of rows" in treated:
            continue  # its rows say what is new against those before them
        found = QUESTIONS[name](given)
        assert set(found.columns) == set(expected.columns), name
        assert sorted_rows(found) == sorted_rows(expected) != [], name


@pytest.mark.parametrize(
    ("number", "text"), [(8, "auto"), (2**63 - 1, str(2**63)), (-(2**63), str(-(2**63) - 1))]
)
def test_an_axis_of_numbers_and_texts_has_two_columns_in_every_answer(tmp_path, number, text):
    cases = ({"block": number}, {"block": text if text == "auto" else int(text)})
    trees.write(tmp_path, *(trees.record(number, axes=axes) for number, axes in enumerate(cases)))
    frame = harness.load(tmp_path, all=True)
    for given in (frame, through_csv(frame)):
        found = harness.phases(given)
        assert set(found["block"].dropna()) == {number}
        assert set(found["block_text"].dropna()) == {text}


def test_a_column_of_other_values_is_named(frame):
    for name, value in (("value", "fast"), ("samples", "{}"), ("started_at", "soon")):
        with pytest.raises(UsageError, match=f"The column '{name}' cannot be read as it is"):
            harness.phases(frame.astype({name: object}).assign(**{name: value}))
