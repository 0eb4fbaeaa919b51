"""A file of `harness export` gives the rows that the results tree gives; other programs read it."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from itertools import product

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import harness
from harness.errors import HarnessWarning, StoreError, UsageError
from harness.frame.columns import COLUMNS, LISTS, decode_axes, encode_axes
from harness.frame.export import write
from harness.frame.load import everything
from harness.records.schema import StageSamples, to_raw
from harness.workload.workload import Workload, spec
from tests.frame import trees


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two machines, two nights, three workloads, with all that a frame may hold."""
    folder = tmp_path_factory.mktemp("module") / "results"
    for machine, night in product(("box", "جهاز"), ("2026-11-19", "2026-11-20")):
        at = {"machine": machine, "night": night}
        about = to_raw({"device": "cpu", "night": night})
        for process in range(6):
            trees.write(
                folder,
                record(process, "nn.Predict", at, {"size": 8}, environment=about),
                record(process, "nn.Predict", at, {"size": "8"}, environment=about),
                record(process, "nn.Wide", at, {"shape": (8, (2, "x"))}, reference_ns={}),
            )
        trees.write(
            folder,
            record(0, "<script>'\"", at, {"größe": True, "rate": 1.5, "none": None}),
            trees.failed(0, "ValueError: no", workload="nn.Fails", **at),
        )
    return folder


@pytest.fixture(scope="module")
def frame(results):
    return everything(results)


@pytest.fixture(scope="module")
def export(frame, tmp_path_factory):
    """All rows as a file, to be read and left as it is."""
    file = tmp_path_factory.mktemp("exports") / "rows.parquet"
    write(frame, file)
    return file


def record(process, workload, at, axes, **fields):
    traced = StageSamples([1e6 + process], cpu_ns=[1e6] if process else [])
    stages = {"trace": traced, "compile": [2e6 + process]}
    name = {"process": f"{process}"}
    return trees.record(process, stages, workload=workload, axes=axes, **at, **name, **fields)


def assert_same(one, two):
    """Equal rows, columns and types, whatever the order of rows and of axes."""
    assert set(one.columns) == set(two.columns)
    one, two = (
        # Lists with NaN are not equal, not even to themselves.
        frame.assign(**{name: frame[name].map(repr) for name in LISTS if name in frame})
        .assign(text=list(map(repr, frame.to_dict("records"))))
        .sort_values("text", ignore_index=True)
        for frame in (one, two[one.columns])
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    for name in set(one.columns) - set(COLUMNS):
        assert list(map(type, one[name])) == list(map(type, two[name]))


class Scaled(Workload):
    """A workload to be measured."""

    sweep = {"size": [8, 16], "form": ["a", (1, "b")]}

    def inputs(self, size, form):
        return spec((size,))

    @staticmethod
    def function(x):
        return x * 2


def test_a_real_sweep_comes_back_as_it_was(tmp_path, command):
    harness.sweep(Scaled, effort="2x1", results=tmp_path / "results")
    file = tmp_path / "rows.parquet"
    assert command("export", "-r", tmp_path / "results", "-o", file)[0] == 0
    for how in ({}, {"all": True}, {"where": {"size": 8}}, {"columns": ["samples", "form"]}):
        expected = harness.load(tmp_path / "results", **how)
        assert_same(expected, harness.load(file, **how))
    samples = harness.load(file, where={"stage": "compile", "status": "ok"})["samples"]
    assert {(type(cell), len(cell)) for cell in samples} == {(list, 2)}
    assert pq.read_schema(file).field("samples").type == pa.list_(pa.float64())


def test_all_that_a_frame_may_hold_comes_back(frame, export):
    assert {int, str, tuple, bool, type(None)} <= {
        type(value) for name in ("size", "shape", "größe", "none") for value in frame[name]
    }
    assert_same(frame, everything(export))
    texts = everything(export)["environment"]
    assert len({id(text) for text in texts}) == texts.nunique(), "rows share a text"


@pytest.mark.parametrize(
    "where",
    [
        {"machine": "جهاز", "night": "2026-11-20"},
        {"size": "8", "stage": "trace"},
        {"shape": (8, (2, "x"))},
        {"n_processes": 6, "commit_date": "2023-11-14T22:13:20Z"},
    ],
)
def test_a_condition_gives_the_same_rows_of_records_and_of_a_file(results, export, where):
    expected = everything(results, where=where)
    assert len(expected)
    assert_same(expected, everything(export, where=where))


def test_every_flipped_byte_is_noticed(export, tmp_path):
    whole, path = export.read_bytes(), tmp_path / "rows.parquet"
    for at in range(0, len(whole), len(whole) // 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(StoreError, match=r"rows\.parquet is damaged"):
            everything(path)


def test_what_another_program_wrote_or_nothing_is_no_export(export, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pq.read_table(export), path)
    for content in (path.read_bytes(), b"", b"PAR1", export.read_bytes()[:-9]):
        path.write_bytes(content)
        with pytest.raises(StoreError, match=r"is damaged, or .* did not write it\. Export"):
            everything(path)


@pytest.mark.parametrize(
    "value", [8, "8", 8.0, True, None, (1, ("a", None)), math.inf, b"x", 2**70, 1j, "", (), "NaN"]
)
def test_an_axis_comes_back_with_its_type(value):
    back = decode_axes(encode_axes({"a": value, "lacking": math.nan}))
    assert back == {"a": value}
    assert type(back["a"]) is type(value)


def test_what_asv_measured_beside_the_records_stays_out_whatever_the_condition(tmp_path):
    trees.write(tmp_path, trees.record())
    trees.write_asv(tmp_path, {"family.Work.track_trace": [[1.0], [], "1.aaaa", 1, 1]})
    with pytest.warns(HarnessWarning, match="No row in"):
        assert everything(tmp_path, where={"target": "tpu"}).empty
    assert len(everything(tmp_path, where={"stage": "trace"})) == 1


def test_no_row_warns_and_leaves_a_frame_with_its_columns(frame, results, export):
    for path in (results, export):
        with pytest.warns(HarnessWarning, match=r"No row in .* has workload = 'nn.Gone'."):
            found = everything(path, where={"workload": "nn.Gone"})
        pd.testing.assert_series_equal(found.dtypes, frame.dtypes[list(COLUMNS)])
        with pytest.warns(HarnessWarning, match="No row"):
            found = harness.load(path, where={"workload": "nn.Gone", "size": 8}, columns=["size"])
        assert list(found.columns) == ["size"]


@pytest.mark.parametrize("given", [{"where": {"workloud": "x"}}, {"columns": ["workloud"]}])
def test_a_column_that_there_is_not_is_named_with_those_that_there_are(results, export, given):
    for path in (results, export):
        with pytest.raises(UsageError, match=r"no column 'workloud'.*machine, commit.*axes .*size"):
            harness.load(path, **given)
    with pytest.raises(UsageError, match=r"expected a list of names, such as \['value'\]"):
        harness.load(results, columns="value")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"workload": 5}, "workload = 5: workload holds text; expected text."),
        ({"samples": [1.0]}, "samples holds lists, which no condition can be put on."),
        ({"value": "fast"}, "value = 'fast': value holds numbers; expected a finite one."),
        ({"value": math.nan}, "expected a finite one."),
        ({"value": 10**400}, "expected a finite one."),
        ({"started_at": "yesterday evening"}, "expected a time, such as 2026-11-20T03:00:00Z."),
    ],
)
def test_a_value_that_no_row_could_have_is_wrong_usage(results, where, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        everything(results, where=where)


def test_other_programs_find_a_column_per_axis_of_one_type(tmp_path):
    axes = ({"size": 8, "mixed": 1, "axes": "a"}, {"size": 16, "mixed": "1", "shape": (1, 2)})
    trees.write(tmp_path, *(trees.record(axes=own, commit_date_ms=None) for own in axes))
    write(everything(tmp_path), tmp_path / "rows.parquet")
    table = pq.read_table(tmp_path / "rows.parquet")
    found = {name: set(table[name].to_pylist()) for name in table.column_names[len(COLUMNS) :]}
    assert found == {
        **{"size": {8, 16}, "mixed": {"1"}, "axis_axes": {None, "a"}, "shape": {None, "(1, 2)"}}
    }
    assert table.schema.field("size").type == pa.int64()
    assert set(pd.read_parquet(tmp_path / "rows.parquet")["size"]) == {8, 16}


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
from pathlib import Path
import harness
from harness.errors import UsageError
from harness.frame.export import write
frame = harness.load(sys.argv[1], all=True)
write(frame, Path("rows.csv"))
for ask in (lambda: write(frame, Path("rows.parquet")), lambda: harness.load(sys.argv[2])):
    try: ask()
    except UsageError as error: print(error)
assert "jax" not in sys.modules
"""


def test_loading_takes_no_jax_and_without_pyarrow_only_parquet_is_refused(
    results, export, tmp_path
):
    words = ["-W", "ignore", "-c", WITHOUT_PYARROW, str(results), str(export)]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    needs = "needs pyarrow, which is not installed: pip install 'pyarrow>=17'"
    assert [needs in line for line in done.stdout.splitlines()] == [True] * 2
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]
