import gc
import math
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import asdict

import harness
from harness.errors import HarnessWarning, UsageError
from harness.frame.columns import COLUMNS
from harness.frame.load import everything, frame_of
from harness.records.distribution import Distribution
from harness.records.schema import SCHEMA, Problems, StageSamples, encode
from harness.records.store import Store
from harness.stages.registry import CASE_STAGES
from tests.frame.trees import COMMIT, failed, record, write, write_asv


def row(frame, stage="trace"):
    (one,) = frame[frame["stage"] == stage].to_dict("records")
    return one


def quietly(path):
    """Load what has problems on purpose; the warning is another test's subject."""
    with pytest.warns(HarnessWarning):
        return everything(path)


# What a frame looks like


def test_the_columns_come_in_the_documented_order_and_then_the_axes(tmp_path):
    write(tmp_path, record())
    frame = everything(tmp_path)
    assert list(frame.columns) == [*COLUMNS, "size"]
    assert list(COLUMNS)[:3] == ["machine", "commit", "commit_date"]
    assert str(frame["commit_date"].dtype).endswith("UTC]")
    assert frame["value"].dtype == float
    assert frame["n_processes"].dtype == np.int64
    assert frame.attrs["problems"] == asdict(Problems())


def test_a_row_says_where_its_number_comes_from(tmp_path):
    write(
        tmp_path,
        record(0, fingerprint="f", dirty="d"),
        record(1, fingerprint="f", dirty="d", started_at_ms=1_700_000_009_000),
    )
    one = row(everything(tmp_path))
    assert one["machine"] == "box"
    assert one["commit"] == COMMIT
    assert one["commit_date"] == pd.Timestamp(1_700_000_000_000, unit="ms", tz="UTC")
    assert one["started_at"] == pd.Timestamp(1_700_000_009_000, unit="ms", tz="UTC")
    assert (one["workload"], one["transform"], one["target"]) == ("family.Work", "forward", "cpu")
    assert (one["jax"], one["unit"], one["scenario"]) == ("0.10.2", "seconds", "off")
    assert (one["fingerprint"], one["effort"], one["dirty"]) == ("f", "default", "d")
    assert (one["status"], one["reason"], one["size"]) == ("ok", "", 8)


def test_stages_stand_in_the_order_in_which_a_program_goes_through_them(tmp_path):
    stages = ["execute", "zeta", "dispatch", "compile", "alpha", "lower", "trace"]
    write(tmp_path, record(0, {stage: [1.0] for stage in stages}))
    assert list(everything(tmp_path)["stage"]) == [
        *("trace", "lower", "compile", "dispatch", "execute"),
        *("alpha", "zeta"),
    ]


def test_cases_stand_in_the_order_of_their_axes_however_they_were_visited(tmp_path):
    sizes = [64, 8, 1024, 16]
    write(tmp_path, *(record(axes={"size": size}) for size in sizes))
    assert list(everything(tmp_path)["size"]) == sorted(sizes)


def test_axes_stay_python_objects_and_what_a_workload_lacks_is_missing(tmp_path):
    write(
        tmp_path,
        record(workload="a.A", axes={"größe": 4, "dtype": "bfloat16"}),
        record(workload="b.B", axes={"shape": [[2, 3], 4], "fast": True, "rate": 0.5}),
    )
    first, second = everything(tmp_path).to_dict("records")
    assert (first["größe"], first["dtype"]) == (4, "bfloat16")
    assert type(first["größe"]) is int
    assert second["shape"] == ((2, 3), 4)
    assert second["fast"] is True
    assert type(second["rate"]) is float
    assert np.isnan(second["größe"])
    assert np.isnan(first["shape"])


def test_an_axis_named_like_a_column_gets_a_column_of_its_own(tmp_path):
    write(tmp_path, record(axes={"version": 3}))
    one = row(everything(tmp_path))
    assert (one["version"], one["axis_version"]) == ("1.aaaa", 3)


def test_measurements_without_git_have_an_empty_commit_and_no_date(tmp_path):
    path = write(tmp_path, record(commit="", commit_date_ms=None))
    one = row(everything(tmp_path))
    assert path.name.startswith("nocommit-")
    assert one["commit"] == ""
    assert pd.isna(one["commit_date"])


def test_a_tree_a_machine_folder_and_one_file_can_be_loaded(tmp_path):
    file = write(tmp_path, record(), record(machine="other"))
    assert len(everything(tmp_path)) == 2
    assert len(everything(tmp_path / "other")) == 1
    assert len(everything(str(file))) == 1


def test_records_at_hand_make_the_same_frame_as_records_in_a_file(tmp_path):
    records = [record(process, axes={"shape": [2, 3]}) for process in range(7)]
    write(tmp_path, *records)
    frame = everything(tmp_path)
    frame.attrs.clear()
    pd.testing.assert_frame_equal(frame_of(records), frame)


def test_loading_leaves_the_garbage_collector_as_it_was(tmp_path):
    write(tmp_path, record())
    assert gc.isenabled()
    everything(tmp_path)
    assert gc.isenabled()


def test_loading_does_not_import_jax(tmp_path):
    write(tmp_path, *(record(process) for process in range(6)))
    code = "import sys, harness; harness.load(sys.argv[1]); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


# The numbers


def test_the_value_is_the_median_of_what_each_process_stands_for(tmp_path):
    rng = np.random.default_rng(0)
    trace, execute = rng.uniform(1e5, 1e7, (9, 3)), rng.uniform(1e3, 1e5, (9, 12))
    write(
        tmp_path,
        *(
            record(n, {"trace": trace[n].tolist(), "execute": execute[n].tolist()})
            for n in range(9)
        ),
    )
    frame = everything(tmp_path)
    for stage, values in (
        ("trace", np.median(trace, axis=1) / 1e9),
        ("execute", execute.min(axis=1) / 1e9),
    ):
        one = row(frame, stage)
        assert one["samples"] == pytest.approx(values)
        assert one["value"] == pytest.approx(np.median(values))
        assert one["n_processes"] == 9
        # n = 9: [x(2), x(8)] covers the median with 96.1 %.
        assert (one["low"], one["high"]) == pytest.approx((np.sort(values)[1], np.sort(values)[7]))


@pytest.mark.parametrize(
    ("processes", "ranks"), [(1, None), (5, None), (6, (0, 5)), (8, (0, 7)), (10, (1, 8))]
)
def test_the_interval_is_that_of_order_statistics(tmp_path, processes, ranks):
    values = [float(value) for value in np.random.default_rng(1).permutation(processes) + 1]
    write(tmp_path, *(record(n, {"trace": [value * 1e9]}) for n, value in enumerate(values)))
    one = row(everything(tmp_path))
    assert one["value"] == np.median(values)
    if ranks is None:
        assert np.isnan([one["low"], one["high"]]).all()
    else:
        assert (one["low"], one["high"]) == (ranks[0] + 1, ranks[1] + 1)


def test_calibrated_is_the_median_of_each_process_s_own_ratio(tmp_path):
    speeds = [1.0, 2.0, 4.0]
    write(
        tmp_path,
        *(
            record(
                n,
                {"trace": [100.0 * speed], "execute": [30.0 * speed, 60.0 * speed]},
                reference_ns={"trace": 50.0 * speed, "execute": 1.0, "loop": 10.0 * speed},
            )
            for n, speed in enumerate(speeds)
        ),
    )
    frame = everything(tmp_path)
    assert row(frame, "trace")["calibrated"] == pytest.approx(2.0)
    assert row(frame, "execute")["calibrated"] == pytest.approx(3.0)
    assert row(frame, "execute")["calibrated_samples"] == pytest.approx([3.0] * 3)


def test_cpu_time_and_the_ids_of_processes_stand_in_the_order_of_samples(tmp_path):
    traced = [StageSamples([8e9, 9e9], cpu_ns=[4e9, 3e9]), StageSamples([6e9]), StageSamples([7e9])]
    for n, stages in enumerate(traced):
        write(
            tmp_path,
            record(n, {"trace": stages, "compile": [1e9]}, process=f"{2 - n}" if n < 2 else ""),
            record(n, workload="family.Other", process=f"{2 - n}" if n < 2 else ""),
        )
    frame = everything(tmp_path)
    trace = row(frame[frame.workload == "family.Work"])
    assert list(zip(trace["samples"], trace["processes"], strict=True)) == [
        *((8.5, "2"), (6.0, "1"), (7.0, "")),
    ]
    assert trace["cpu_samples"] == pytest.approx([3.0, math.nan, math.nan], nan_ok=True)
    assert row(frame, "compile")["cpu_samples"] == []
    assert row(frame[frame.workload == "family.Other"])["processes"] == ["2", "1", ""]


def test_calibrated_leaves_out_processes_without_a_reference(tmp_path):
    write(
        tmp_path,
        record(0, {"trace": [10.0], "own": [1.0]}, reference_ns={"trace": 5.0}),
        record(1, {"trace": [30.0]}, reference_ns={"trace": 5.0}),
        record(2, {"trace": [50.0]}),
        record(3, {"trace": [50.0]}, reference_ns={"trace": 0.0}),
    )
    frame = everything(tmp_path)
    assert row(frame)["calibrated"] == pytest.approx(4.0)
    assert row(frame)["n_processes"] == 4
    assert np.isnan(row(frame, "own")["calibrated"])


def test_a_second_record_of_a_process_replaces_the_first(tmp_path):
    write(tmp_path, record(0, {"trace": [1e9]}), record(1), record(0, {"trace": [3e9]}))
    write(tmp_path, failed(1))
    one = row(everything(tmp_path))
    assert one["samples"] == [3.0]
    assert one["reason"] == "1 of 2 processes failed: ValueError: no"


def test_between_files_the_record_that_was_started_later_replaces_the_other(tmp_path):
    file = write(tmp_path, record(0, {"trace": [1e9]}, started_at_ms=2_000))
    older = record(0, {"trace": [7e9]}, started_at_ms=1_000)
    newer = record(0, {"trace": [3e9]}, started_at_ms=3_000)
    Store(file.with_name("zz.jsonl")).append([older])
    assert row(everything(tmp_path))["samples"] == [1.0]
    Store(file.with_name("aa.jsonl")).append([newer])
    assert row(everything(tmp_path))["samples"] == [3.0]


# Failures, refusals, skips


NO_TRACE = StageSamples(reason="pmap has no trace step")
REFUSED = StageSamples(refused={"two compilations": 2, "a cache hit": 1})


@pytest.mark.parametrize(
    ("records", "stage", "expected"),
    [
        (
            [*(record(n) for n in range(7)), failed(7, "RuntimeError: boom")],
            "trace",
            ("ok", "1 of 8 processes failed: RuntimeError: boom", 7),
        ),
        (
            [
                record(0, {"trace": [1.0], "compile": REFUSED}),
                record(1, {"compile": StageSamples(refused={"two compilations": 3})}),
            ],
            "compile",
            ("refused", "6 samples refused: two compilations", 0),
        ),
        (
            [record(0, {"trace": StageSamples([1.0], refused={"a cache hit": 1})})],
            "trace",
            ("ok", "1 sample refused: a cache hit", 1),
        ),
        (
            [record(0, {"trace": NO_TRACE, "lower": [1.0]}), failed(1)],
            "trace",
            ("skipped", "pmap has no trace step; 1 of 2 processes failed: ValueError: no", 0),
        ),
    ],
)
def test_a_row_says_what_became_of_its_processes_and_samples(tmp_path, records, stage, expected):
    write(tmp_path, *records)
    one = row(everything(tmp_path), stage)
    assert (one["status"], one["reason"], one["n_processes"]) == expected
    assert np.isnan(one["value"]) == (expected[2] == 0)


@pytest.mark.parametrize(
    ("records", "status", "reason"),
    [
        ([failed(0, "a"), failed(1, "b"), failed(2, "b")], "failed", "b"),
        ([record(0, {}, status="skipped", reason="no GPU here")], "skipped", "no GPU here"),
    ],
)
def test_a_case_without_samples_has_a_row_per_stage_with_the_commonest_reason(
    tmp_path, records, status, reason
):
    write(tmp_path, *records)
    frame = everything(tmp_path)
    assert list(frame["stage"]) == list(CASE_STAGES)
    assert (set(frame["status"]), set(frame["reason"])) == ({status}, {reason})
    assert frame["value"].isna().all()
    assert set(frame["n_processes"]) == {0}
    assert frame["samples"].tolist() == [[]] * len(CASE_STAGES)


def test_a_record_that_could_not_find_its_case_does_not_hide_the_axes(tmp_path):
    lost = failed(0, "missing", key="k", axes={}, transform="")
    write(tmp_path, lost, record(1, key="k"), failed(2, key="k", axes={}, transform=""))
    one = row(everything(tmp_path))
    assert (one["size"], one["transform"], one["n_processes"]) == (8, "forward", 1)


# What cannot be used


def test_a_missing_path_says_what_to_do(tmp_path):
    with pytest.raises(UsageError, match=r"no results at .*nowhere.*Measure with `harness run`"):
        everything(tmp_path / "nowhere")


def test_a_path_without_results_gives_an_empty_frame_with_all_columns(tmp_path):
    with pytest.warns(HarnessWarning, match="no results in"):
        frame = everything(tmp_path)
    assert list(frame.columns) == list(COLUMNS)
    assert frame.empty
    assert str(frame["started_at"].dtype).endswith("UTC]")


def torn(path):
    path.write_bytes(path.read_bytes()[:-20])


def corrupt(path):
    first, second, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b"1000000", b"1000001") + last)


def of_another_schema(path):
    first, second, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second + encode(record(2, schema=SCHEMA + 1)))


def longer_than_any_record(path):
    first, second, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"x" * 20_000 + b"\n" + second)


@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        (torn, "torn", "torn last line"),
        (corrupt, "corrupt", "corrupt line"),
        (of_another_schema, "other_schema", "another schema version"),
        (longer_than_any_record, "corrupt", "a line longer than any record"),
    ],
)
def test_a_line_that_cannot_be_used_is_counted_and_the_rest_is_read(
    tmp_path, monkeypatch, spoil, kind, said
):
    monkeypatch.setattr("harness.records.files.MAX_LINE_BYTES", 4096)
    path = write(tmp_path, record(0), record(1), record(2))
    spoil(path)
    with pytest.warns(HarnessWarning, match=r"left out: 1 .*line"):
        frame = everything(tmp_path)
    found = frame.attrs["problems"]
    assert found == {**asdict(Problems()), kind: 1, "files": [f"{path.name}: {said}"]}
    assert row(frame)["n_processes"] == 2


def test_an_empty_file_is_no_problem(tmp_path):
    write(tmp_path, record())
    Store(tmp_path / "box" / "records" / "new.jsonl").open()
    assert len(everything(tmp_path)) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2\n3,4\n",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b'{"other": 1}\n',
        b"[1, 2",
        b"\n\xff\xfe\n.",
    ],
)
def test_a_foreign_file_is_counted_once(tmp_path, content):
    write(tmp_path, record())
    (tmp_path / "box" / "records" / "foreign.jsonl").write_bytes(content)
    frame = quietly(tmp_path)
    found = frame.attrs["problems"]
    assert len(frame) == 1
    assert (found["unreadable"], found["corrupt"], found["torn"]) == (1, 0, 0)
    assert found["files"] == ["foreign.jsonl: no records in it"]


def test_a_file_with_one_torn_record_is_torn_and_not_foreign(tmp_path):
    path = write(tmp_path, record())
    for end in (1, 9, 30):
        path.write_bytes(encode(record())[:end])
        with pytest.warns(HarnessWarning):
            frame = everything(tmp_path)
        found = frame.attrs["problems"]
        assert (found["torn"], found["unreadable"]) == (1, 0)


def test_a_folder_in_the_place_of_a_file_is_unreadable(tmp_path):
    write(tmp_path, record())
    (tmp_path / "box" / "records" / "folder.jsonl").mkdir()
    assert quietly(tmp_path).attrs["problems"]["unreadable"] == 1


def test_the_caller_s_count_of_problems_is_added_to(tmp_path):
    path = write(tmp_path, record(0), record(1))
    path.write_bytes(path.read_bytes()[:-20])
    problems = Problems(corrupt=2)
    with pytest.warns(HarnessWarning, match=r"left out: 1 torn"):
        harness.load(tmp_path, problems=problems)
    assert (problems.torn, problems.corrupt) == (1, 2)


# Records and asv's files together


def test_a_tree_with_records_and_asv_files_is_not_doubled(tmp_path):
    ours = [[0.5], [["8"], ["'forward'"], ["'cpu'"]], "1.aaaa", 0, 0.1]
    write_asv(
        tmp_path,
        {"family.Work.track_trace": ours, "other.Work.track_trace": ours},
        {"family.Work.track_trace": {"param_names": ["size", "transform", "target"]}},
    )
    write(tmp_path, record())
    frame = everything(tmp_path)
    assert frame["workload"].tolist() == ["family.Work", "other.Work"]
    assert frame["value"].tolist() == [1e-3, 0.5]


def test_asv_rows_of_another_environment_are_kept_beside_records(tmp_path):
    ours = [[0.5], [], "1.aaaa", 0, 0.1]
    write_asv(tmp_path, {"family.Work.track_trace": ours}, env="virtualenv-py3.11")
    write(tmp_path, record())
    assert everything(tmp_path)["env"].nunique() == 2


@pytest.mark.slow
def test_loading_is_roughly_linear_in_the_number_of_records(tmp_path):
    def seconds(cases):
        results = tmp_path / str(cases)
        store = Store(results / "box" / "records" / "x.jsonl")
        store.append(record(axes={"size": case}) for case in range(cases))
        begin = time.process_time()
        everything(results)
        return time.process_time() - begin

    seconds(10)
    assert seconds(8_000) < 60 * seconds(800)


def calls(*times_ns):
    """Return samples of `execute` as a process keeps them."""
    return StageSamples([min(times_ns)], calls=Distribution.of(times_ns))


def test_quantiles_of_calls_are_medians_over_processes_and_their_counts_add_up(tmp_path):
    write(tmp_path, *(record(n, {"execute": calls(*range(n + 1, n + 102))}) for n in range(7)))
    (row,) = everything(tmp_path).to_dict("records")
    assert [round(row[name] * 1e9) for name in ("value", "least", "p10", "p50", "p90")] == [
        *(4, 4, 14, 54, 94)
    ]
    assert [round(row[name] * 1e9) for name in ("p50_low", "p50_high")] == [51, 57]
    assert row["n_calls"] == 7 * 101
    assert math.isnan(row["programs"])


def test_what_old_records_do_not_know_of_calls_is_missing(tmp_path):
    old = {"execute": [5.0], "dispatch": [5.0]}
    write(tmp_path, record(0, old), record(1, {**old, "execute": calls(5, 6, 7)}))
    execute, dispatch = (
        everything(tmp_path, where={"stage": stage}).iloc[0] for stage in ("execute", "dispatch")
    )
    assert dispatch[["least", "p10", "p50_low", "n_calls", "programs_s"]].isna().all()
    assert execute["p50"] == pytest.approx(6e-9)
    assert math.isnan(execute["n_calls"])


def test_an_interval_needs_the_calls_of_all_processes(tmp_path):
    known = [record(n, {"execute": calls(5, 6, 7)}) for n in range(7)]
    write(tmp_path, *known, record(7, {"execute": [5.0]}))
    (row,) = everything(tmp_path).to_dict("records")
    assert row["low"] == row["high"] == pytest.approx(5e-9)
    assert math.isnan(row["p50_low"])
    assert math.isnan(row["p50_high"])


def test_programs_that_were_built_inside_of_a_stage_are_told(tmp_path):
    inside = StageSamples([9e6, 8e6, 7e6], programs=[2, 2, 2], programs_ns=[4e6, 3e6, 2e6])
    write(tmp_path, record(0, {"trace": inside, "lower": [1e6]}))
    frame = everything(tmp_path).set_index("stage")
    assert (frame.loc["trace", "programs"], frame.loc["trace", "programs_s"]) == (2, 0.003)
    assert frame.loc["lower", ["programs", "programs_s"]].isna().all()


def test_what_must_be_known_of_samples_is_told_where_most_processes_say_so(tmp_path):
    said = [StageSamples([5.0], reason="inline"), StageSamples([5.0])]
    for several, reason in (((0, 0, 1), "inline"), ((0, 1, 1), "")):
        frame = frame_of([record(n, {"in_flight": said[at]}) for n, at in enumerate(several)])
        assert frame[["status", "reason"]].to_numpy().tolist() == [["ok", reason]]
