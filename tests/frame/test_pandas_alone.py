"""What somebody who knows pandas, and nothing of us, does with a frame of everything."""

import json

import pandas as pd
import pytest

import harness
from harness.frame.columns import COLUMNS
from harness.frame.typed import plain, typed

MIXED = "leaves"


@pytest.fixture(scope="module")
def everything():
    """Some committed results, and a workload whose axis `leaves` holds text: mixed."""
    frame = harness.load("results", all=True)
    frame = frame[frame["workload"].str.contains("Momentum|Softmax|Gelu")]
    other = frame[frame["workload"] == "normalization.Softmax"].head(50)
    other = other.assign(workload="other.Text", axes='{"leaves": "host", "flag": true}')
    other = other.drop(columns=[name for name in frame.columns if name not in COLUMNS])
    return plain(typed(pd.concat([frame, other], ignore_index=True)))


ANALYSES = {
    "sort by all columns": lambda f: f.sort_values(list(f.columns)),
    "drop duplicates": lambda f: f.drop_duplicates(),
    "distinct values": lambda f: f.nunique(),
    "describe": lambda f: f.describe(include="all"),
    "large of a mixed axis": lambda f: f[f[MIXED] > 10]["workload"].unique(),
    "means of all axes": lambda f: f.groupby("workload")[["size", "width", MIXED]].mean(),
    "texts of a mixed axis": lambda f: f[f["leaves_text"] == "host"],
    "a truth as a mask": lambda f: f[f["approximate"].fillna(False)],
    "dates": lambda f: f.set_index("started_at").sort_index()["value"].resample("D").count(),
    "one row per sample": lambda f: f.assign(s=f["samples"].map(json.loads)).explode("s")["s"],
    "compare with itself": lambda f: (f == f).sum().sum(),
    "missing values": lambda f: f.fillna({"size": 0, MIXED: 0}).isna().sum(),
    "codes of an environment": lambda f: f["environment"].map(json.loads).map(len).max(),
    "to text": lambda f: (f.head().to_string(), f.head().to_html(), f.to_json(date_format="iso")),
}


@pytest.mark.parametrize("analysis", ANALYSES)
def test_an_analysis_by_pandas_alone_finds_something(everything, analysis):
    found = ANALYSES[analysis](everything)
    assert found is not None
    assert len(found) if hasattr(found, "__len__") else found == found


def test_what_a_mixed_axis_says_is_right_in_every_workload(everything):
    cases = everything.set_index("workload")
    numbers, texts = cases.loc["pytree.MomentumUpdate"], cases.loc["other.Text"]
    assert str(everything[MIXED].dtype) == "Int64"
    assert set(numbers[MIXED]) == {8, 128}
    assert numbers["leaves_text"].isna().all()
    assert texts[MIXED].isna().all()
    assert set(texts["leaves_text"]) == {"host"}
    assert texts["flag"].all()
    assert everything["flag"].dtype == "boolean"


@pytest.mark.parametrize("kind", ["parquet", "pickle", "feather"])
def test_pandas_writes_a_frame_and_reads_it_back_as_it_was(everything, tmp_path, kind):
    getattr(everything, f"to_{kind}")(tmp_path / "frame")
    back = getattr(pd, f"read_{kind}")(tmp_path / "frame")
    pd.testing.assert_frame_equal(back, everything)
