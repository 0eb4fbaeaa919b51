from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
import zlib
from itertools import product

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import harness
from harness.errors import HarnessWarning, StoreError, UsageError
from harness.frame.columns import COLUMNS, LISTS, decode_axes, encode_axes
from harness.frame.export import write
from harness.frame.load import everything
from harness.frame.parquet import GROUP_ROWS, MARK, VERSION
from harness.records.schema import StageSamples, to_raw
from tests.frame import trees

EXPORTS = ("nights", "rows.parquet")


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
def exports(frame, tmp_path_factory):
    """All rows as a folder and as a file, to be read and left as they are."""
    folder = tmp_path_factory.mktemp("exports")
    for name in EXPORTS:
        write(frame, folder / name)
    return folder


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
        frame.assign(**{name: frame[name].map(repr) for name in LISTS})
        .assign(text=list(map(repr, frame.to_dict("records"))))
        .sort_values("text", ignore_index=True)
        for frame in (one, two[one.columns])
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    for name in set(one.columns) - set(COLUMNS):
        assert list(map(type, one[name])) == list(map(type, two[name]))


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_gives_back_the_rows_of_the_records(frame, exports, name):
    assert {int, str, tuple, bool, type(None)} <= {
        type(value) for name in ("size", "shape", "größe", "none") for value in frame[name]
    }
    assert_same(frame, everything(exports / name))


def test_an_export_of_the_first_layout_had_lists_and_is_read(frame, exports, tmp_path):
    table = pq.read_table(exports / "rows.parquet")
    for name in LISTS:
        items = pa.array([msgspec.json.decode(text) for text in table[name].to_pylist()])
        table = table.set_column(table.schema.get_field_index(name), name, items)
    table = table.set_column(0, "machine", table["machine"].cast(pa.string()))
    pq.write_table(table.replace_schema_metadata({MARK: b"1"}), tmp_path / "rows.parquet")
    assert_same(frame, everything(tmp_path / "rows.parquet"))


def test_an_export_of_before_a_column_has_no_value_there(frame, exports, tmp_path):
    lists = ("cpu_samples", "cpu_processes", "p90_samples", "processes")
    old = pq.read_table(exports / "rows.parquet").drop_columns([*lists, "protocol"])
    pq.write_table(old.replace_schema_metadata({MARK: b"2"}), tmp_path / "rows.parquet")
    nothing = {name: [[]] * len(frame) for name in lists}
    protocol = pd.array([""] * len(frame), "str")
    expected = frame.assign(**nothing, protocol=protocol)
    assert_same(expected, everything(tmp_path / "rows.parquet"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "where",
    [
        {"workload": "nn.Predict"},
        {"workload": ["nn.Wide", "<script>'\""], "stage": ("compile",)},
        {"machine": "جهاز", "night": "2026-11-20"},
        {"size": [8]},
        {"size": "8", "stage": "trace"},
        {"shape": (8, (2, "x"))},
        {"größe": True, "rate": 1.5},
        {"status": "failed"},
        {"n_processes": 6, "commit_date": "2023-11-14T22:13:20Z"},
        {"environment": '{"device":"cpu","night":"2026-11-19"}'},
        {"workload": []},
    ],
)
def test_a_condition_gives_the_same_rows_of_records_and_of_parquet(results, exports, where):
    expected = everything(results, where=where)
    assert expected.empty == (where == {"workload": []})
    for name in EXPORTS:
        assert_same(expected, everything(exports / name, where=where))


def test_columns_are_those_that_were_asked_for_in_that_order(results, exports):
    for path in (results, exports / "nights"):
        given = {"where": {"size": 8, "status": "ok"}, "columns": ["value", "size", "night"]}
        found = harness.load(path, all=True, **given)
        assert list(found.columns) == ["value", "size", "night"]
        assert len(found) == 8
    with pytest.raises(UsageError, match=r"expected a list of names, such as \['value'\]"):
        harness.load(results, columns="value")


def test_only_files_that_a_condition_leaves_are_opened(results, exports, tmp_path):
    shutil.copytree(exports / "nights", tmp_path / "nights")
    for path in tmp_path.rglob("*.parquet"):
        if "machine=box" not in str(path) or "night=2026-11-20" not in str(path):
            path.write_bytes(b"rubbish")
    where = {"machine": "box", "night": "2026-11-20"}
    assert_same(everything(results, where=where), everything(tmp_path / "nights", where=where))
    with pytest.raises(StoreError, match=r"is no whole Parquet file.*Delete it, and export again"):
        everything(tmp_path / "nights")


def test_only_row_groups_that_a_condition_leaves_are_read(results, tmp_path):
    frame = everything(results, where={"machine": "box", "night": "2026-11-20"})
    many = pd.concat([frame] * GROUP_ROWS, ignore_index=True)
    write(many, tmp_path / "nights")
    [path] = tmp_path.rglob("*.parquet")
    metadata = pq.ParquetFile(path).metadata
    place = metadata.schema.names.index("workload")
    content = bytearray(path.read_bytes())
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        held = group.column(place).statistics
        if held.min == held.max == "nn.Wide":
            for column in map(group.column, range(group.num_columns)):
                begin, size = column.dictionary_page_offset, column.total_compressed_size
                begin = begin or column.data_page_offset
                content[begin : begin + size] = b"\xff" * size
    path.write_bytes(content)  # what cannot be decoded is not noticed as long as nobody reads it
    found = everything(tmp_path / "nights", where={"workload": "nn.Predict"})
    assert len(found) == (many["workload"] == "nn.Predict").sum()
    with pytest.raises(StoreError, match=r"parquet is damaged: its checksum is wrong"):
        everything(tmp_path / "nights", where={"workload": "nn.Wide"})


def test_a_flipped_bit_is_noticed_by_its_checksum(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    write(frame.assign(value=0.5), path)
    metadata = pq.ParquetFile(path).metadata
    column = metadata.row_group(0).column(metadata.schema.names.index("value"))
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"rows\.parquet is damaged: its checksum is wrong"):
        everything(path)
    groups = content.rindex(b"HCRC") - 8  # there is one; a writer would have sealed it so
    content[groups : groups + 8] = b"%08x" % zlib.crc32(content[:groups])
    path.write_bytes(content)  # Parquet has a checksum of its own, of pages
    with pytest.raises(StoreError, match=r"rows\.parquet cannot be read: .*Export it again\."):
        everything(path)


def test_a_new_night_leaves_other_files_alone_and_an_old_one_replaces_its_own(results, tmp_path):
    results = shutil.copytree(results, tmp_path / "results")
    folder = tmp_path / "nights"

    def of_night(night):
        return write(everything(results, where={"night": night}), folder)

    assert of_night("2026-11-19") == 2
    before = {path: path.stat().st_ino for path in folder.rglob("*.parquet")}
    assert of_night("2026-11-20") == 2
    assert len(list(folder.rglob("*.parquet"))) == 4
    trees.write(results, record(9, "nn.New", {"machine": "box", "night": "2026-11-20"}, {}))
    of_night("2026-11-20")
    assert_same(everything(results), everything(folder))
    assert {path: path.stat().st_ino for path in before} == before
    assert not [path for path in folder.rglob(".*") if path.is_file()], "no scratch file stays"


@pytest.mark.parametrize("machine", ["../up", "a/b=c%41 d", ".hidden", "_x", "C:\\*?|", "ع" * 60])
def test_a_hostile_name_is_a_folder_and_comes_back(frame, tmp_path, machine):
    rows = frame[frame["machine"] == "box"].assign(machine=machine, night="")
    folder = tmp_path / "deep" / "nights"
    write(rows, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name[:8] for path in folder.iterdir()] == ["machine="]
    found = everything(folder, where={"machine": machine, "night": ""})
    assert found["machine"].tolist() == [machine] * len(rows)


@pytest.mark.parametrize(
    "value", [8, "8", 8.0, True, None, (1, ("a", None)), math.inf, b"x", 2**70, 1j, "", (), "NaN"]
)
def test_an_axis_comes_back_with_its_type(value):
    back = decode_axes(encode_axes({"a": value, "lacking": math.nan}))
    assert back == {"a": value}
    assert type(back["a"]) is type(value)


def test_rows_of_one_environment_share_its_text(results, exports):
    for path in (results, exports / "nights"):
        texts = everything(path)["environment"]
        assert texts.dtype == object
        assert len({id(text) for text in texts}) == texts.nunique()


def test_what_asv_measured_beside_the_records_stays_out_whatever_the_condition(tmp_path):
    trees.write(tmp_path, trees.record())
    trees.write_asv(tmp_path, {"family.Work.track_trace": [[1.0], [], "1.aaaa", 1, 1]})
    with pytest.warns(HarnessWarning, match="No row in"):
        assert everything(tmp_path, where={"target": "tpu"}).empty
    assert len(everything(tmp_path, where={"stage": "trace"})) == 1


def test_no_row_warns_and_leaves_a_frame_with_its_columns(frame, results, exports):
    for path in (results, *(exports / name for name in EXPORTS)):
        with pytest.warns(HarnessWarning, match="No row in .* has workload = 'nn.Gone'."):
            found = everything(path, where={"workload": "nn.Gone"})
        pd.testing.assert_series_equal(found.dtypes, frame.dtypes[list(COLUMNS)])
        with pytest.warns(HarnessWarning, match="No row"):
            found = harness.load(path, where={"workload": "nn.Gone", "size": 8}, columns=["size"])
        assert list(found.columns) == ["size"]


@pytest.mark.parametrize("given", [{"where": {"workloud": "x"}}, {"columns": ["workloud"]}])
def test_a_column_that_there_is_not_is_named_with_those_that_there_are(results, exports, given):
    for path in (results, *(exports / name for name in EXPORTS)):
        with pytest.raises(UsageError, match=r"no column 'workloud'.*machine, commit.*axes .*size"):
            harness.load(path, **given)


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


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({MARK: b"9"}, "is of version 9 of the layout; this harness reads 1 to 3"),
        (None, "holds no frame that `harness export` wrote"),
        ({MARK: VERSION}, "is damaged: its checksum is missing"),  # another program wrote it anew
    ],
)
def test_a_file_of_another_version_or_maker_is_named(exports, tmp_path, metadata, said):
    shutil.copytree(exports / "nights", tmp_path / "nights")
    path = next(tmp_path.rglob("*.parquet"))
    pq.write_table(pq.read_table(path).replace_schema_metadata(metadata), path)
    with pytest.raises(StoreError, match=f"{re.escape(str(path))}.*{said}"):
        everything(tmp_path / "nights")


def test_a_folder_of_results_is_no_place_for_a_dataset_and_stays_one_beside_a_file(
    frame, results, tmp_path
):
    results = shutil.copytree(results, tmp_path / "results")
    with pytest.raises(UsageError, match=r"is a results tree\. Choose another folder"):
        write(frame, results)
    write(frame, results / "rows.parquet")
    assert_same(frame, everything(results))
    with pytest.raises(UsageError, match="is a file; a dataset is a folder"):
        write(frame, results / "rows.parquet", partition=True)


def test_other_programs_find_a_column_per_axis_of_one_type(tmp_path):
    axes = ({"size": 8, "mixed": 1, "axes": "a"}, {"size": 2**70, "mixed": "1", "shape": (1, 2)})
    trees.write(tmp_path, *(trees.record(axes=own, commit_date_ms=None) for own in axes))
    write(everything(tmp_path), tmp_path / "rows.parquet")
    table = pq.read_table(tmp_path / "rows.parquet")
    found = {name: set(table[name].to_pylist()) for name in table.column_names[len(COLUMNS) :]}
    assert found == {
        **{"size": {8, None}, "size_text": {None, str(2**70)}, "axis_axes": {None, "a"}},
        **{"mixed": {1, None}, "mixed_text": {None, "1"}, "shape": {None, "(1, 2)"}},
    }
    assert table.schema.field("size").type == table.schema.field("mixed").type == pa.int64()
    assert_same(everything(tmp_path), everything(tmp_path / "rows.parquet"))


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
from pathlib import Path
import harness
from harness.errors import UsageError
from harness.frame.export import write
frame = harness.load(sys.argv[1], all=True)
write(frame, Path("rows.csv"))
for ask in (
    lambda: write(frame, Path("rows.parquet")),
    lambda: write(frame, Path("nights")),
    lambda: harness.load(sys.argv[2]),
):
    try: ask()
    except UsageError as error: print(error)
assert "jax" not in sys.modules
"""


def test_loading_takes_no_jax_and_without_pyarrow_only_parquet_is_refused(
    results, exports, tmp_path
):
    words = ["-W", "ignore", "-c", WITHOUT_PYARROW, str(results), str(exports / "rows.parquet")]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    needs = "needs pyarrow, which is not installed: pip install 'jax-harness[parquet]'"
    assert [needs in line for line in done.stdout.splitlines()] == [True] * 3
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]
