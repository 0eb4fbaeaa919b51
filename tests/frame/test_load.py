import gc
import math

import msgspec
import numpy as np
import pandas as pd
import pytest
from msgspec.structs import asdict

import harness
from harness.errors import HarnessWarning, UsageError
from harness.frame.columns import COLUMNS
from harness.frame.load import everything, frame_of
from harness.program.facts import Facts
from harness.records.distribution import Distribution
from harness.records.schema import SCHEMA, Problems, StageSamples, encode
from harness.records.store import Store
from harness.stages.registry import CASE_STAGES
from tests.frame.comparisons import numpy, xla
from tests.frame.trees import COMMIT, failed, record, write, write_asv


def row(frame, stage="trace"):
    (one,) = frame[frame["stage"] == stage].to_dict("records")
    return one


def about(file, kind, what):
    return {"file": str(file), "kind": kind, "what": what, "count": 1}


# What a frame looks like


def test_the_columns_come_in_the_documented_order_and_then_the_axes(tmp_path):
    write(tmp_path, record())
    frame = everything(tmp_path)
    assert list(frame.columns) == [*COLUMNS, "size"]
    assert list(COLUMNS)[:3] == ["machine", "commit", "commit_date"]
    assert frame.attrs["problems"] == asdict(Problems())


def test_a_row_says_where_its_number_comes_from(tmp_path):
    about = {"fingerprint": "f", "dirty": "d"}
    write(tmp_path, record(0, **about), record(1, started_at_ms=1_700_000_009_000, **about))
    one = row(everything(tmp_path))
    at = {"commit_date": 1_700_000_000_000, "started_at": 1_700_000_009_000}
    expected = {
        **{name: pd.Timestamp(ms, unit="ms", tz="UTC") for name, ms in at.items()},
        **{"machine": "box", "commit": COMMIT, "workload": "family.Work", "transform": "forward"},
        **{"target": "cpu", "jax": "0.10.2", "unit": "seconds", "scenario": "off", **about},
        **{"effort": "default", "status": "ok", "reason": "", "size": 8},
    }
    assert {name: one[name] for name in expected} == expected


def test_stages_and_cases_stand_in_an_order_of_their_own_however_they_were_visited(tmp_path):
    visited = ["execute", "zeta", "dispatch", "compile", "alpha", "lower", "trace"]
    stages = {stage: [1.0] for stage in visited}
    sizes = [64, 8, 1024, 16]
    write(tmp_path, *(record(0, stages, axes={"size": n}) for n in sizes))
    frame = everything(tmp_path)
    in_order = ["trace", "lower", "compile", "dispatch", "execute", "alpha", "zeta"]
    assert list(frame["stage"]) == in_order * 4
    assert list(frame["size"].unique()) == sorted(sizes)


def test_axes_stay_python_objects_and_what_a_workload_lacks_is_missing(tmp_path):
    write(
        tmp_path,
        record(workload="a.A", axes={"größe": 4, "dtype": "bfloat16", "version": 3}),
        record(workload="b.B", axes={"shape": [[2, 3], 4], "fast": True, "rate": 0.5}),
    )
    first, second = everything(tmp_path).to_dict("records")
    assert (first["größe"], first["dtype"]) == (4, "bfloat16")
    assert [type(one) for one in (first["größe"], second["rate"])] == [int, float]
    assert (first["version"], first["axis_version"]) == ("1.aaaa", 3)
    assert second["shape"] == ((2, 3), 4)
    assert second["fast"] is True
    assert np.isnan([second["größe"], first["shape"]]).all()


def test_measurements_without_git_have_an_empty_commit_and_no_date(tmp_path):
    path = write(tmp_path, record(commit="", commit_date_ms=None))
    one = row(everything(tmp_path))
    assert (path.name.partition("-")[0], one["commit"]) == ("nocommit", "")
    assert pd.isna(one["commit_date"])


def test_a_tree_a_machine_folder_and_one_file_can_be_loaded(tmp_path):
    file = write(tmp_path, record(), record(machine="other"))
    places = (tmp_path, tmp_path / "other", str(file))
    assert [len(everything(place)) for place in places] == [2, 1, 1]


def test_records_at_hand_make_the_same_frame_as_records_in_a_file(tmp_path):
    records = [
        record(process, axes={"shape": [2, 3]}, facts=Facts(launches=3)) for process in range(7)
    ]
    records += [*xla([1e3]), *numpy([1e3])]
    write(tmp_path, *records)
    assert gc.isenabled()
    frame = everything(tmp_path)
    assert gc.isenabled()
    frame.attrs.clear()
    pd.testing.assert_frame_equal(frame_of(records), frame)


# The numbers


def test_the_value_is_the_median_of_what_each_process_stands_for(tmp_path):
    rng = np.random.default_rng(0)
    trace, execute = rng.uniform(1e5, 1e7, (9, 3)), rng.uniform(1e3, 1e5, (9, 12))
    taken = zip(trace.tolist(), execute.tolist(), strict=True)
    write(tmp_path, *(record(n, {"trace": t, "execute": e}) for n, (t, e) in enumerate(taken)))
    frame = everything(tmp_path)
    for stage, values in (("trace", np.median(trace, axis=1)), ("execute", execute.min(axis=1))):
        one = row(frame, stage)
        assert one["samples"] == pytest.approx(values / 1e9)
        assert one["value"] == pytest.approx(np.median(values) / 1e9)
        assert one["n_processes"] == 9


@pytest.mark.parametrize(
    ("processes", "interval"),
    [(1, None), (5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9))],
)
def test_the_interval_is_that_of_order_statistics(processes, interval):
    values = [float(value) for value in np.random.default_rng(1).permutation(processes) + 1]
    one = row(frame_of(record(n, {"trace": [s * 1e9]}) for n, s in enumerate(values)))
    assert one["value"] == np.median(values)
    found = (one["low"], one["high"])
    assert found == pytest.approx(interval or (math.nan, math.nan), nan_ok=True)


def test_calibrated_is_the_median_of_each_process_s_own_ratio_where_it_has_a_reference():
    records = [
        record(
            n,
            {"trace": [100.0 * speed], "execute": [30.0 * speed, 60.0 * speed], "own": [1.0]},
            reference_ns={"trace": 50.0 * speed, "execute": 1.0, "loop": 10.0 * speed},
        )
        for n, speed in enumerate([1.0, 2.0, 4.0])
    ]
    records += [record(3, {"trace": [9.0]}), record(4, reference_ns={"trace": 0.0})]
    frame = frame_of(records)
    assert row(frame)["calibrated"] == pytest.approx(2.0)
    assert row(frame)["n_processes"] == 5
    assert row(frame, "execute")["calibrated"] == pytest.approx(3.0)
    assert row(frame, "execute")["calibrated_samples"] == pytest.approx([3.0] * 3)
    assert np.isnan(row(frame, "own")["calibrated"])


def test_cpu_time_and_the_ids_of_processes_stand_in_the_order_of_samples():
    traced = [StageSamples([8e9, 9e9], cpu_ns=[4e9, 3e9]), StageSamples([6e9]), StageSamples([7e9])]
    records = []
    for n, (stage, process) in enumerate(zip(traced, ("2", "1", ""), strict=True)):
        records.append(record(n, {"trace": stage, "compile": [1e9]}, process=process))
        records.append(record(n, workload="family.Other", process=process))
    frame = frame_of(records)
    trace = row(frame[frame.workload == "family.Work"])
    assert (trace["samples"], trace["processes"]) == ([8.5, 6.0, 7.0], ["2", "1", ""])
    assert trace["cpu_samples"] == pytest.approx([3.0, math.nan, math.nan], nan_ok=True)
    assert row(frame, "compile")["cpu_samples"] == []
    assert row(frame[frame.workload == "family.Other"])["processes"] == ["2", "1", ""]


def test_a_second_record_of_a_process_replaces_the_first(tmp_path):
    first, second = (record(0, {"trace": [at]}) for at in (1e9, 3e9))
    write(tmp_path, first, record(1), second, failed(1))
    one = row(everything(tmp_path))
    assert one["samples"] == [3.0]
    assert one["reason"] == "1 of 2 processes failed: ValueError: no"


def test_between_files_the_record_that_was_started_later_replaces_the_other(tmp_path):
    file = write(tmp_path, record(0, {"trace": [1e9]}, started_at_ms=2_000))
    for name, trace, started_at_ms, expected in (("zz", 7e9, 1_000, 1.0), ("aa", 3e9, 3_000, 3.0)):
        another = record(0, {"trace": [trace]}, started_at_ms=started_at_ms)
        Store(file.with_name(f"{name}.jsonl")).append([another])
        assert row(everything(tmp_path))["samples"] == [expected]


# Failures, refusals, skips


NO_TRACE = StageSamples(reason="pmap has no trace step")
TWICE = StageSamples(refused={"two compilations": 2, "a cache hit": 1})
ONCE = StageSamples(refused={"two compilations": 3})


@pytest.mark.parametrize(
    ("stage", "records", "expected"),
    [
        (
            *("trace", [*(record(n) for n in range(7)), failed(7, "RuntimeError: boom")]),
            ("ok", "1 of 8 processes failed: RuntimeError: boom", 7),
        ),
        (
            *(
                "compile",
                [record(0, {"trace": [1.0], "compile": TWICE}), record(1, {"compile": ONCE})],
            ),
            ("refused", "6 samples refused: two compilations", 0),
        ),
        (
            *("trace", [record(0, {"trace": StageSamples([1.0], refused={"a cache hit": 1})})]),
            ("ok", "1 sample refused: a cache hit", 1),
        ),
        (
            *("trace", [record(0, {"trace": NO_TRACE, "lower": [1.0]}), failed(1)]),
            ("skipped", "pmap has no trace step; 1 of 2 processes failed: ValueError: no", 0),
        ),
    ],
)
def test_a_row_says_what_became_of_its_processes_and_samples(stage, records, expected):
    one = row(frame_of(records), stage)
    assert (one["status"], one["reason"], one["n_processes"]) == expected
    assert np.isnan(one["value"]) == (expected[2] == 0)


def test_what_became_of_a_case_stands_in_its_own_row():
    of = [record(size, {"trace": [1.0], "compile": ONCE}, axes={"size": size}) for size in range(3)]
    of[1].stages["compile"] = StageSamples([1e9], cpu_ns=[5e8])
    frame = frame_of(of).set_index(["size", "stage"])
    assert frame.loc[(0, "compile"), "reason"] == "3 samples refused: two compilations"
    assert frame.loc[(1, "compile"), ["reason", "cpu_samples"]].tolist() == ["", [0.5]]
    assert frame.loc[(2, "compile"), "reason"] == "3 samples refused: two compilations"
    assert set(frame.xs("trace", level="stage")["reason"]) == {""}


@pytest.mark.parametrize(
    ("records", "status", "reason"),
    [
        ([failed(0, "a"), failed(1, "b"), failed(2, "b")], "failed", "b"),
        ([record(0, {}, status="skipped", reason="no GPU here")], "skipped", "no GPU here"),
    ],
)
def test_a_case_without_samples_has_a_row_per_stage_with_the_commonest_reason(
    records, status, reason
):
    frame = frame_of(records)
    assert list(frame["stage"]) == list(CASE_STAGES)
    assert (set(frame["status"]), set(frame["reason"])) == ({status}, {reason})
    assert frame["value"].isna().all()
    assert set(frame["n_processes"]) == {0}
    assert frame["samples"].tolist() == [[]] * len(CASE_STAGES)


def test_a_record_that_could_not_find_its_case_does_not_hide_the_axes():
    lost = {"reason": "missing", "key": "k", "axes": {}, "transform": ""}
    one = row(frame_of([failed(0, **lost), record(1, key="k"), failed(2, **lost)]))
    assert (one["size"], one["transform"], one["n_processes"]) == (8, "forward", 1)


# What cannot be used


NEWER, LONG = encode(record(2, schema=SCHEMA + 1)), b"x" * 20_000 + b"\n"


def test_a_path_without_results_gives_an_empty_frame_and_none_says_what_to_do(tmp_path):
    with pytest.warns(HarnessWarning, match="no results in") as said:
        frame = everything(tmp_path)
    assert said[0].filename == __file__, "the line that asked"
    assert (frame.empty, list(frame.columns)) == (True, list(COLUMNS))
    assert str(frame["started_at"].dtype).endswith("UTC]")
    with pytest.raises(UsageError, match=r"no results at .*nowhere.*Measure with `harness run`"):
        everything(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("kind", "said", "spoil"),
    [
        ("torn", "", lambda one, two, last: one + two + last[:-20]),
        (
            "corrupt",
            "",
            lambda one, *two: one + b"".join(two).replace(b"1000", b"2000", 1),
        ),
        ("other_schema", "", lambda one, two, last: one + two + NEWER),
        ("corrupt", "a line longer than any record", lambda one, two, last: one + LONG + two),
    ],
)
def test_a_line_that_cannot_be_used_is_counted_and_the_rest_is_read(
    tmp_path, monkeypatch, kind, said, spoil
):
    monkeypatch.setattr("harness.records.files.MAX_LINE_BYTES", 4096)
    path = write(tmp_path, record(0), record(1), record(2))
    path.write_bytes(spoil(*path.read_bytes().splitlines(keepends=True)))
    problems = Problems(corrupt=2)
    with pytest.warns(HarnessWarning, match=r"left out: 1 .*line"):
        frame = harness.load(tmp_path, problems=problems)
    found = {**asdict(Problems()), kind: 1, "files": [about(path, kind, said)]}
    assert frame.attrs["problems"] == found
    added = {**found, "corrupt": 2 + found["corrupt"]}
    assert msgspec.to_builtins(problems) == added
    assert row(frame)["n_processes"] == 2


FOREIGN = (
    b"a,b\n1,2\n3,4\n",
    b"\x89PNG\r\n\x1a\n\x00\x00",
    b'{"other": 1}\n',
    b"[1, 2",
    b"\n\xff\n.",
)


@pytest.mark.parametrize(
    ("contents", "kind", "said"),
    [
        (FOREIGN, "unreadable", "no records in it"),
        ([encode(record())[:end] for end in (1, 9, 30)], "torn", ""),
    ],
)
def test_a_foreign_file_is_counted_once_as_one_torn_record_is_and_an_empty_one_is_none(
    tmp_path, contents, kind, said
):
    file = write(tmp_path, record())
    file.with_name("empty.jsonl").touch()
    for content in contents:
        file.with_name("other.jsonl").write_bytes(content)
        with pytest.warns(HarnessWarning):
            frame = everything(tmp_path)
        counted = {kind: 1, "files": [about(file.with_name("other.jsonl"), kind, said)]}
        assert frame.attrs["problems"] == asdict(Problems()) | counted
        assert len(frame) == 1


def test_a_folder_in_the_place_of_a_file_is_unreadable(tmp_path):
    write(tmp_path, record()).with_name("folder.jsonl").mkdir()
    with pytest.warns(HarnessWarning):
        assert everything(tmp_path).attrs["problems"]["unreadable"] == 1


# Records and asv's files together


def test_a_tree_with_records_and_asv_files_is_not_doubled(tmp_path):
    ours = [[0.5], [["8"], ["'forward'"], ["'cpu'"]], "1.aaaa", 0, 0.1]
    both = {"family.Work.track_trace": ours, "other.Work.track_trace": ours}
    about = {"family.Work.track_trace": {"param_names": ["size", "transform", "target"]}}
    write_asv(tmp_path, both, about)
    write(tmp_path, record())
    frame = everything(tmp_path)
    assert frame["workload"].tolist() == ["family.Work", "other.Work"]
    assert frame["value"].tolist() == [1e-3, 0.5]
    write_asv(tmp_path, {"family.Work.track_trace": ours}, env="virtualenv-py3.11")
    assert everything(tmp_path)["env"].nunique() == 2, "rows of another environment are kept"


def calls(*times_ns):
    """Return samples of `execute` as a process keeps them."""
    return StageSamples([min(times_ns)], calls=Distribution.of(times_ns))


def test_quantiles_of_calls_are_medians_over_processes_and_their_counts_add_up():
    frame = frame_of(record(n, {"execute": calls(*range(n + 1, n + 102))}) for n in range(7))
    (row,) = frame.to_dict("records")
    names = ("value", "least", "p10", "p50", "p90", "p50_low", "p50_high")
    assert [round(row[name] * 1e9) for name in names] == [4, 4, 14, 54, 94, 51, 57]
    assert row["n_calls"] == 7 * 101
    assert math.isnan(row["programs"])


def test_what_old_records_do_not_know_of_calls_is_missing():
    old = {"execute": [5.0], "dispatch": [5.0]}
    frame = frame_of([record(0, old), record(1, {**old, "execute": calls(5, 6, 7)})])
    dispatch, execute = (one for _, one in frame.iterrows())
    assert dispatch[["least", "p10", "p50_low", "n_calls", "programs_s"]].isna().all()
    assert execute["p50"] == pytest.approx(6e-9)
    assert math.isnan(execute["n_calls"])


def test_an_interval_needs_the_calls_of_all_processes():
    known = [record(n, {"execute": calls(5, 6, 7)}) for n in range(7)]
    (row,) = frame_of([*known, record(7, {"execute": [5.0]})]).to_dict("records")
    assert row["low"] == row["high"] == pytest.approx(5e-9)
    assert np.isnan([row["p50_low"], row["p50_high"]]).all()


def test_programs_that_were_built_inside_of_a_stage_are_told():
    inside = StageSamples([9e6, 8e6, 7e6], programs=[2, 2, 2], programs_ns=[4e6, 3e6, 2e6])
    frame = frame_of([record(0, {"trace": inside, "lower": [1e6]})]).set_index("stage")
    assert (frame.loc["trace", "programs"], frame.loc["trace", "programs_s"]) == (2, 0.003)
    assert frame.loc["lower", ["programs", "programs_s"]].isna().all()


def test_what_must_be_known_of_samples_is_told_where_most_processes_say_so():
    said = [StageSamples([5.0], reason="inline"), StageSamples([5.0])]
    for several, reason in (((0, 0, 1), "inline"), ((0, 1, 1), "")):
        frame = frame_of([record(n, {"in_flight": said[at]}) for n, at in enumerate(several)])
        assert frame[["status", "reason"]].to_numpy().tolist() == [["ok", reason]]
