"""Change points over nights and commits, from records as a sweep leaves them."""

import math

import numpy as np
import pandas as pd
import pytest

import harness
from harness.errors import UsageError
from harness.frame.load import frame_of
from harness.program.facts import Facts
from harness.records.schema import to_raw
from harness.verdicts.history import series
from harness.verdicts.history.change_points import COLUMNS
from harness.verdicts.history.points import SERIES
from tests.verdicts.history.trees import (
    DAY_MS,
    FIRST_MS,
    PROCESSES,
    night_name,
    night_of,
    nights,
    noisy,
    stepped,
)
from tools.performance.scale_tree import STAGES, synthetic_frame


def changes(records, **options):
    """Return the change points of records as dictionaries."""
    return harness.history(frame_of(records), **options).to_dict("records")


def test_a_step_has_its_nights_commits_levels_and_numbers():
    frame = frame_of(nights(stepped()))
    found = harness.history(frame)
    assert list(found.columns) == [*COLUMNS[:3], "size", *COLUMNS[3:]]
    (row,) = found.to_dict("records")
    assert (row["workload"], row["size"], row["stage"]) == ("family.Work", 8, "compile")
    assert (row["change"], row["state"], row["basis"]) == ("slower", "confirmed", "wall")
    assert (row["night_before"], row["night_after"]) == (night_name(5), night_name(6))
    assert (row["commit_before"], row["commit_after"]) == (f"{5:040x}", f"{6:040x}")
    assert (row["n_before"], row["n_after"], row["effect"]) == (6, 6, 0.05)
    assert row["ratio"] == row["after_s"] / row["before_s"] == pytest.approx(1.3, rel=0.02)
    assert row["before_s"] == pytest.approx(1, rel=0.02)
    assert row["started_at"] == pd.Timestamp(FIRST_MS + 6 * DAY_MS + 3_600_007, unit="ms", tz="UTC")
    points = series(frame)
    assert list(points.columns) == [*SERIES[:6], "size", *SERIES[6:]]
    measured = points[points["value"].notna()]
    assert measured["position"].tolist() == list(range(12))
    assert (measured["low"] < measured["value"]).all()
    assert (measured["value"] < measured["high"]).all()
    assert row["night_after"] == points["night"][points["position"] == row["position"]].item()
    older = frame.drop(columns=["cpu_samples", "protocol"])
    assert harness.history(older)["ratio"].tolist() == found["ratio"].tolist()


def test_what_is_no_time_of_a_stage_is_no_history():
    frame = frame_of(nights(stepped()))
    for column, value in (("threads", "one"), ("workload", "reference"), ("unit", "bytes")):
        assert harness.history(frame.assign(**{column: value})).empty
    assert list(series(frame.iloc[:0]).columns) == list(series(frame).columns)
    for few in (frame.iloc[:0], *(frame_of(nights([1.0, 2.0][:count])) for count in (1, 2))):
        found = harness.history(few)
        assert (len(found), found["ratio"].dtype, found["n_before"].dtype) == (0, float, np.int64)
    with pytest.raises(UsageError, match="no column 'night'"):
        harness.history(frame.drop(columns="night"))


def test_changes_stand_newest_first_and_that_of_the_last_night_is_new():
    factors = [1] * 6 + [0.7] * 4 + [1.4] * 4 + [2.8]
    times = [factor * value for factor, value in zip(factors, noisy(15, 2), strict=True)]
    found = changes(nights(times))
    assert [row["night_after"] for row in found] == [night_name(n) for n in (14, 10, 6)]
    assert [row["change"] for row in found] == ["slower", "slower", "faster"]
    assert [row["state"] for row in found] == ["new", "confirmed", "confirmed"]


def test_the_environment_and_the_facts_are_said_and_what_is_equal_too():
    new = {
        "environment": to_raw({"jax": "0.12.0.1", "flags": {"XLA_FLAGS": "--a=1"}}),
        "env": "py3.12-jax0.12.0.1",
        "jax": "0.12.0.1",
        "fingerprint": "f1",
        "facts": Facts(fusions=3, temporary_bytes=4096),
    }
    facts = Facts(fusions=2, temporary_bytes=0)
    (row,) = changes(nights(stepped(), {6: new}, env="py3.12-jax0.11.2", jax="0.11.2", facts=facts))
    assert row["environment"] == "jax 0.11.2 → 0.12.0.1, XLA_FLAGS equal"
    assert row["facts"] == "+1 fusion, +4.1 kB temporary"
    assert row["same_program"] is False
    assert row["env"] == "py3.12-jax0.12.0.1"


@pytest.mark.parametrize(
    ("stage", "fields", "changed", "expected"),
    [
        *((stage, {}, {}, ("environment", True)) for stage in ("execute", "dispatch", "load")),
        ("compile", {}, {}, ("slower", True)),
        ("execute", {}, {"fingerprint": "f1"}, ("slower", False)),
        ("execute", {"inputs": "i1"}, {"inputs": "i2"}, ("slower", True)),
        ("execute", {"fingerprint": ""}, {}, ("slower", None)),
    ],
)
def test_an_equal_program_that_only_runs_slower_is_the_environment(
    stage, fields, changed, expected
):
    (row,) = changes(nights(stepped(factor=1.5), {6: changed}, stage=stage, **fields))
    assert (row["change"], row["same_program"]) == expected


LARGE = to_raw({"host": {"cpu": "Large"}})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ({}, {"version": "1.bbbb"}, "version 1.aaaa → 1.bbbb"),
        ({}, {"effort": "quick"}, "effort default → quick"),
        (
            {"environment": to_raw({"host": {"cpu": "Small"}})},
            {"environment": LARGE},
            "another machine of this name: processor Small → Large",
        ),
    ],
)
def test_another_version_effort_or_machine_cuts_the_series(old, new, reason):
    records = nights(stepped(), {6: new}, **old)
    assert changes(records) == []
    (row,) = changes(records, cuts=True)
    assert (row["change"], row["cut"]) == ("incomparable", reason)
    assert (row["night_before"], row["night_after"]) == (night_name(5), night_name(6))
    assert (row["n_before"], row["n_after"], row["state"]) == (6, 6, "confirmed")
    assert row["after_s"] > row["before_s"]
    assert math.isnan(row["ratio"])


def test_a_step_beside_a_cut_is_found_and_efforts_in_turn_are_no_cuts_each():
    times = stepped(8, 20)
    records = nights(times[:14])
    for number, value in enumerate(times):
        records += night_of(number, 3 * value, effort="quick")
    found = sorted(row["change"] for row in changes(records, cuts=True))
    assert found == ["incomparable", "slower", "slower"]
    pieces = series(frame_of(records)).groupby("series")["piece"].unique()
    assert pieces.map(list).tolist() == [[0, 1]]


def test_failed_nights_in_the_middle_are_points_without_a_value():
    records = nights(stepped(6, 14))
    lost = [r for r in records if r.night in {night_name(4), night_name(6)}]
    for one in lost:
        one.status, one.reason, one.stages = "failed", "ValueError: no", {}
    # A record that failed says of no stage what it took; the frame has a row per usual stage.
    points = series(frame_of(records))
    failed = points[(points["stage"] == "compile") & (points["status"] == "failed")]
    assert failed["night"].tolist() == [night_name(4), night_name(6)]
    assert failed["value"].isna().all()
    (row,) = changes(records)
    assert (row["night_before"], row["night_after"]) == (night_name(5), night_name(7))
    assert (row["n_before"], row["n_after"]) == (5, 7)
    # Neither are those judged that are refused, or whose values are no times.
    frame = frame_of(nights(stepped()))
    for number, value in ((2, np.nan), (3, np.inf), (4, 0.0), (7, -1.0)):
        frame.loc[frame["night"] == night_name(number), "value"] = value
    frame.loc[frame["night"] == night_name(6), ["status", "value"]] = ["refused", 9.0]
    (row,) = harness.history(frame).to_dict("records")
    assert (row["night_before"], row["night_after"]) == (night_name(5), night_name(8))
    assert row["n_before"] == 3


def test_a_clock_that_moved_back_shuffles_neither_nights_nor_commits():
    (row,) = changes(nights(stepped(), {7: {"started_at_ms": 1_000_000_000_000}}))
    assert (row["night_after"], row["n_before"], row["n_after"]) == (night_name(6), 6, 6)
    (row,) = changes(nights(stepped(), commit="c" * 40, commit_date_ms=FIRST_MS))  # of one commit
    assert row["commit_before"] == row["commit_after"] == "c" * 40
    assert (row["night_before"], row["night_after"]) == (night_name(5), night_name(6))
    records = []
    for number, value in enumerate(stepped()):
        records += night_of(number, value, night="", started_at_ms=FIRST_MS - number * DAY_MS)
    (row,) = changes(records)
    assert (row["commit_before"], row["commit_after"]) == (f"{5:040x}", f"{6:040x}")


def with_reference(seconds, speed):
    """Records whose reference takes `speed` as long in some nights."""
    records = nights(seconds)
    for one in records:
        one.reference_ns = {"compile": 1e6 * speed[int(one.night[-2:]) - 1]}
    return records


def test_a_reference_alone_makes_no_event_and_tells_what_moved_with_it():
    """Medians of 2.09 and 2.12 ms were once told as 3.1 ms → 704 µs."""
    alone = with_reference([2.09e-3] * 6 + [2.12e-3] * 6, [1.0] * 6 + [3.0] * 6)
    assert changes(alone) == []
    (row,) = changes(with_reference(stepped(), [1.0] * 6 + [1.3] * 6))
    assert (row["change"], row["evidence"]) == ("environment", "reference")
    assert row["before_s"] == pytest.approx(1, rel=0.02)
    own = with_reference(stepped(), [1.0] * 12)
    for one in own[:8]:
        one.reference_ns = {}
    assert [row["change"] for row in [*changes(own), *changes(own[8:])]] == ["slower"] * 2


COUNTED = {"facts": Facts(fusions=2, trace_calls=12_040), "fingerprint": "f0"}
MORE = {"facts": Facts(fusions=3, trace_calls=12_305), "fingerprint": "f1"}


def test_two_nights_suffice_for_what_counts_prove_whatever_the_times_say():
    (row,) = changes(nights([1.0, 0.99], {1: MORE}, stage="trace", **COUNTED))
    assert (row["change"], row["state"], row["ratio"]) == ("more", "confirmed", 0.99)
    assert row["evidence"] == "counts"
    assert (row["calls_before"], row["calls_after"]) == (12_040, 12_305)
    assert row["facts"].startswith("+1 fusion")
    for after, expected in ((1.04, "less"), (0.5, "faster"), (1.5, "slower")):
        (row,) = changes(nights([1.0, 1.0, after, after], {0: MORE, 2: COUNTED}, stage="trace"))
        assert row["change"] == expected
    assert (row["evidence"], row["calls_after"]) == ("", 12_040)  # slower though it calls less
    times = nights(stepped(9, 14), {5: MORE}, stage="trace", **COUNTED)
    found = {row["night_after"]: row["evidence"] for row in changes(times)}
    assert found == {night_name(5): "counts", night_name(9): ""}
    assert changes(nights(noisy(12, 4), stage="trace", **COUNTED)) == []


def test_a_changed_program_is_told_though_its_times_are_unsure():
    (row,) = changes(nights(noisy(6, 3, 0.2), {3: MORE}, **COUNTED))
    assert (row["change"], row["state"], row["same_program"]) == ("program", "confirmed", False)
    assert (row["night_before"], row["night_after"]) == (night_name(2), night_name(3))
    upgrade = {3: {**MORE, "jax": "0.12.0.1"}}
    assert changes(nights(noisy(6, 3), upgrade, **COUNTED)) == []


@pytest.mark.parametrize("before", [1, 2])
def test_a_compile_ten_times_slower_at_one_commit_is_slower_there_and_faster_after_it(before):
    """The times of one point are no step; with another program they are, as for compare."""
    back = {before: MORE, before + 1: COUNTED}
    found = changes(nights([1.0] * before + [10.5, 1.01], back, **COUNTED))
    assert [row["change"] for row in found] == ["faster", "slower"]
    assert found[1]["ratio"] == pytest.approx(10.5)
    # As far apart as nights of one program are.
    found = changes(nights([1.0, 1.3, 1.0, 1.25, 1.0], {3: MORE, 4: COUNTED}, **COUNTED))
    assert [row["change"] for row in found] == ["program", "program"]


def test_stages_of_one_process_are_judged_on_its_cpu_time_where_all_nights_know_it():
    records = nights(stepped())
    for one in records:
        one.stages["compile"].cpu_ns = [2e9]
    assert changes(records) == []
    assert series(frame_of(records))[["value", "basis"]].drop_duplicates().values.tolist() == [
        [2.0, "cpu"]
    ]
    for one in records[:PROCESSES]:
        one.stages["compile"].cpu_ns = []
    assert [row["basis"] for row in changes(records)] == ["wall"]


def test_axes_of_any_type_tell_series_apart():
    records = []
    for number, axes in enumerate([{"a": 1}, {"a": True}, {"a": (1, 2)}, {"a": "1"}, {"b": 1}, {}]):
        times = stepped() if number == 2 else noisy(12, number)
        records += nights(times, axes=axes)
    # So do two environments of every night.
    records += nights(noisy(12, 9), axes={}, env="py3.12-jax0.12.0")
    assert series(frame_of(records))["series"].nunique() == 7
    assert [row["a"] for row in changes(records)] == [(1, 2)]


@pytest.mark.nightly
def test_many_series_have_the_injected_changes_and_no_other():
    frame = synthetic_frame(60, 24, noise=0.02, step=1.6, stepped=0.2)
    found = harness.history(frame)
    injected = set(frame.loc[frame["fusions"] == 200, ["workload", "size"]].itertuples(index=False))
    assert set(found[["workload", "size"]].itertuples(index=False)) == injected
    by_times = found[found["evidence"] == ""]
    assert by_times["stage"].unique().tolist() == ["compile"]
    assert found.groupby("stage")["change"].unique().map(list).to_dict() == {
        stage: ["slower"] for stage in ("compile", "lower", "trace")
    }
    assert found["night_after"].unique().tolist() == ["2026-01-13"]
    assert series(frame)["series"].nunique() == 60 * len(STAGES)
