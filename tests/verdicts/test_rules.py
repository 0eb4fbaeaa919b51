"""Which verdict follows from which evidence."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from harness.errors import UsageError
from harness.frame.load import frame_of
from harness.program.facts import Facts
from harness.verdicts import compare_arms
from harness.verdicts.error_rates import SCHEMA, ErrorRates, Noise, Rate
from harness.verdicts.judge import COLUMNS, NUMBERS
from tests.frame.trees import failed, record
from tests.verdicts.arms_of import arm, records


def only(a, b, **options):
    """Return the one row of a comparison that is not of a stage without samples."""
    frame = compare_arms(a, b, **options)
    found = frame[frame["basis"] != ""]
    assert len(found) == 1
    return found.iloc[0]


def test_a_clear_slow_down_is_slower_and_a_clear_gain_faster():
    slower, faster = only(arm(), arm(1.2)), only(arm(1.2), arm())

    assert (slower["verdict"], faster["verdict"]) == ("slower", "faster")
    assert slower["ratio"] == pytest.approx(1.2, rel=0.03)
    assert slower["low"] < slower["ratio"] < slower["high"]
    assert slower["reason"].startswith("20 % slower (5 % counts), p = ")
    assert slower["p_adjusted"] <= 0.05
    assert slower["basis"] == "calibrated"
    assert (slower["n_a"], slower["n_b"], slower["effect"]) == (8, 8, 0.05)


def test_equal_arms_are_same_only_where_the_interval_is_narrow_enough():
    same, wide = only(arm(), arm(seed=1)), only(arm(spread=0.3), arm(spread=0.3))

    assert same["verdict"] == "same"
    assert same["reason"].endswith("lies within 5 %")
    assert wide["verdict"] == "unsure"
    assert "more processes would narrow it (--effort thorough)" in wide["reason"]


def test_a_difference_below_what_counts_is_not_slower():
    row = only(arm(spread=0.002), arm(1.03, spread=0.002))

    assert row["p_adjusted"] < 0.05
    assert row["ratio"] > 1.02
    assert row["verdict"] == "same"


def test_a_difference_below_what_counts_that_may_be_above_it_is_unsure():
    row = only(arm(spread=0.02), arm(1.035, spread=0.02))

    assert row["p_adjusted"] < 0.05
    assert row["high"] > 1.05
    assert row["verdict"] == "unsure"
    assert "less than what counts (5 %)" in row["reason"]


def test_a_large_difference_that_may_be_chance_is_unsure():
    row = only(arm(spread=0.5), arm(1.3, spread=0.5, seed=2))

    assert row["verdict"] == "unsure"
    assert "may be chance" in row["reason"]


@pytest.mark.parametrize(("n", "said"), [(1, "2 more of A and 2 more of B"), (2, "1 more of A")])
def test_too_few_processes_are_unsure_and_the_reason_says_how_many_more(n, said):
    row = only(arm(n=n), arm(2, n=n))

    assert row["verdict"] == "unsure"
    assert f"too few processes ({n} and {n}): at least {said}" in row["reason"]
    assert row["ratio"] == pytest.approx(2, rel=0.1)
    assert math.isnan(row["p"])
    assert math.isnan(row["low"])


def test_a_stray_process_leaves_a_slow_down_unsure_and_never_the_same():
    a, b = records(), records(1.2)
    a[3].stages["compile"].samples_ns = [9e6] * 3

    assert only(frame_of(a), frame_of(b))["verdict"] == "unsure"


@pytest.mark.parametrize(("factor", "verdict"), [(1, "same"), (2, "slower")])
def test_samples_without_any_spread_are_compared_without_a_warning(factor, verdict):
    row = only(arm(spread=0), arm(factor, spread=0))

    assert row["verdict"] == verdict
    assert row["low"] == row["high"] == pytest.approx(factor)


def test_the_more_rows_the_less_one_small_p_says():
    a, b = records(n=3), records(1.2, n=3)
    alone = only(frame_of(a), frame_of(b))
    for size in range(200):
        a += records(n=3, axes={"size": size}, seed=size)
        b += records(n=3, axes={"size": size}, seed=-1 - size)
    many = compare_arms(frame_of(a), frame_of(b))

    assert (many["p_adjusted"] >= many["p"]).sum() == many["p"].notna().sum()
    first = many[(many["size"] == 8) & (many["stage"] == "compile")].iloc[0]
    assert first["p_adjusted"] > alone["p_adjusted"]


def test_rows_that_change_by_less_than_counts_do_not_lower_the_bar_for_the_others():
    doubtful = records(spread=0.05), records(1.06, spread=0.05, seed=1)
    sizes = range(100, 160)

    def among(factor):
        """Return the doubtful row's p among rows that changed by a factor, and all verdicts."""
        a, b = ([*side] for side in doubtful)
        for size in sizes:
            a += records(axes={"size": size}, spread=0.002, seed=size)
            b += records(factor, axes={"size": size}, spread=0.002, seed=-size)
        found = compare_arms(frame_of(a), frame_of(b), stages=["compile"]).set_index("size")
        return found["p_adjusted"], found["verdict"]

    alone = only(*map(frame_of, doubtful))
    p, verdict = among(1.03)
    assert alone["ratio"] > 1.05
    assert alone["p"] < 0.05
    # Every other row surely differs, and none of them by as much as counts.
    assert (p[list(sizes)] < 0.001).all()
    assert set(verdict[list(sizes)]) == {"same"}
    assert p[8] == pytest.approx(min(1, 61 * alone["p"]))
    assert verdict[8] == "unsure"
    # Changes that count are what a user looks for: they make a further one more likely.
    p, verdict = among(1.3)
    assert p[8] == pytest.approx(alone["p"])
    assert verdict[8] == "slower"


@pytest.mark.parametrize("stage", ["execute", "dispatch", "load"])
def test_a_changed_time_of_an_equal_program_is_the_environment(stage):
    a = arm(stages=(stage,), fingerprint="f1")
    b = arm(2, stages=(stage,), fingerprint="f1", jax="0.11.2")
    row = only(a, b)

    assert (row["verdict"], row["cause"]) == ("unsure", "environment")
    assert row["reason"].startswith("environment: the program is the same, and ")
    assert "jax 0.10.2 → 0.11.2, flags equal" in row["reason"]


def test_an_equal_program_in_an_equal_environment_leaves_the_machine():
    row = only(*(arm(f, stages=("execute",), fingerprint="f1") for f in (1, 2)))

    assert row["reason"].endswith("nothing recorded differs: the machine")


def test_compiling_an_equal_program_can_become_slower():
    assert only(arm(fingerprint="f1"), arm(2, fingerprint="f1"))["verdict"] == "slower"


def test_another_program_is_named_with_the_difference_of_its_facts():
    a = arm(stages=("execute",), fingerprint="f1", facts=Facts(fusions=2, temporary_bytes=0))
    b = arm(2, stages=("execute",), fingerprint="f2", facts=Facts(fusions=3, temporary_bytes=4096))
    row = only(a, b)

    assert (row["verdict"], row["cause"]) == ("slower", "program")
    assert row["reason"].endswith("program: +1 fusion, +4.1 kB temporary")


def rates_of(ratios, **fields):
    rate = Rate(0, 400, 0.0, 0.009)
    case = ("family.Work", "1.aaaa", {"size": 8}, "cpu", "forward", "", "off", "compile")
    values = {"machine": "box", "env": "e", "commit": "c", "effort": "default", **fields}
    return ErrorRates(
        SCHEMA, values["machine"], values["env"], values["commit"], 1, values["effort"], 3, rate,
        {}, rate, [Noise(*case, ratios)], [],
    )  # fmt: skip


def test_a_case_that_scatters_between_identical_arms_needs_a_larger_effect():
    calm = only(arm(), arm(1.2), rates=rates_of([1.01, 0.99]))
    noisy = only(arm(), arm(1.2), rates=rates_of([1.01, 1 / 1.3]))
    elsewhere = only(arm(), arm(1.2), rates=rates_of([1.3], machine="other"))

    assert (calm["effect"], calm["verdict"]) == (0.05, "slower")
    assert noisy["effect"] == pytest.approx(0.3 * 1.25)
    assert noisy["verdict"] != "slower"
    assert elsewhere["effect"] == 0.05


def test_rows_of_one_side_are_incomparable():
    frame = compare_arms(arm(), arm(workload="family.Other"))

    assert set(frame["verdict"]) == {"incomparable"}
    assert set(frame["reason"]) == {"only in A", "only in B"}


def test_another_version_is_incomparable():
    frame = compare_arms(arm(), arm(version="2.bbbb"))
    row = frame[frame["stage"] == "compile"].iloc[0]

    assert row["verdict"] == "incomparable"
    assert row["version"] == "1.aaaa → 2.bbbb"
    assert row["reason"] == "the workload or the method changed: 1.aaaa → 2.bbbb"


def test_failed_and_skipped_cases_are_incomparable_with_their_reason():
    bad = frame_of([failed(reason="ValueError: no")])
    skipped = frame_of([record(stages={}, status="skipped", reason="no such device")])

    assert "B failed: ValueError: no" in set(compare_arms(arm(), bad)["reason"])
    assert "A skipped: no such device" in set(compare_arms(skipped, arm())["reason"])
    assert set(compare_arms(bad, bad)["reason"]) == {"A and B failed: ValueError: no"}


def test_processes_that_did_different_things_are_incomparable():
    frame = compare_arms(arm(), arm(effort="quick"))

    assert "B / A" not in frame.columns
    reason = frame[frame["stage"] == "compile"]["reason"].iloc[0]
    assert reason.startswith("processes did different things: 3 passes")


@pytest.mark.parametrize("value", [math.nan, 0.0, -1.0, math.inf])
def test_a_sample_that_is_no_time_makes_a_row_incomparable(value):
    b = arm()
    b.at[b.index[b["stage"] == "compile"][0], "samples"] = [value] * 8
    frame = compare_arms(arm(), b)

    row = frame[frame["stage"] == "compile"].iloc[0]
    assert (row["verdict"], row["reason"]) == (
        "incomparable",
        f"B has a sample that is no time: {value} s",
    )


def test_without_a_reference_raw_seconds_are_compared():
    assert only(arm(), arm(1.2, reference_ns={}))["basis"] == "raw"


def test_interleaved_arms_are_compared_in_raw_seconds():
    a = arm()
    a["calibrated_samples"] = [[1000.0] * len(s) for s in a["samples"]]
    row = only(a, arm(), interleaved=True)

    assert (row["basis"], row["verdict"]) == ("interleaved", "same")


def test_another_jax_is_calibrated_by_the_loop_because_the_reference_changes_with_it():
    # All programs compile twice as slowly, the reference program too.
    slow = {"trace": 1e6, "lower": 1e6, "compile": 2e6, "loop": 1e6}
    a = arm(stages=("compile", "execute"))
    b = arm(2, stages=("compile", "execute"), jax="0.11.2", reference_ns=slow)
    row = compare_arms(a, b).set_index("stage").loc["compile"]

    assert (row["verdict"], row["basis"]) == ("slower", "calibrated")
    assert row["ratio"] == pytest.approx(2, rel=0.05)


def test_another_scenario_is_calibrated_by_the_loop_because_the_reference_depends_on_it():
    # In a process that reads all its programs from the cache, the reference compiles alone.
    alone = {"trace": 1e6, "lower": 1e6, "compile": 1.25e6, "loop": 1e6}
    stages = ("first_call", "start")
    a, b = arm(stages=stages, scenario="cold"), arm(stages=stages, scenario="warm")
    c = arm(stages=stages, scenario="warm", reference_ns=alone)
    for other in (b, c):
        frame = compare_arms(a, other, on=["scenario"], stages=["first_call"])
        assert frame[["verdict", "basis"]].to_numpy().tolist() == [["same", "calibrated"]]


def test_another_jax_is_raw_where_the_loop_is_not_known():
    assert only(arm(), arm(jax="0.11.2"))["basis"] == "raw"


def test_the_loop_takes_a_faster_machine_out_of_the_comparison_of_two_releases():
    halved = {"trace": 1e6, "lower": 1e6, "compile": 1e6, "loop": 0.5e6}
    a = arm(stages=("compile", "execute"))
    b = arm(0.5, stages=("compile", "execute"), jax="0.11.2", reference_ns=halved)
    frame = compare_arms(a, b, stages=["compile"])

    assert frame["verdict"].tolist() == ["same"]


def test_another_python_is_compared_in_raw_seconds():
    assert only(arm(), arm(python="3.12.1"))["basis"] == "raw"


def test_the_newest_row_of_a_case_counts_and_one_without_a_date_is_the_oldest():
    old, new = arm(3, started_at_ms=1_000), arm(1.2, started_at_ms=2_000)
    undated = arm(5)
    undated["started_at"] = pd.NaT
    b = pd.concat([undated, new, old], ignore_index=True)

    assert only(arm(), b)["ratio"] == pytest.approx(1.2, rel=0.05)


def test_clocks_in_the_future_do_not_matter():
    assert only(arm(), arm(1.2, started_at_ms=99_000_000_000_000))["verdict"] == "slower"


def test_axes_of_mixed_types_and_of_other_workloads_pair_by_value():
    axes = [{"x": v} for v in (1, "1", True, (1, 2), 1.5)] + [{"y": None}, {}]
    a = frame_of([r for one in axes for r in records(axes=one)])
    b = frame_of([r for one in reversed(axes) for r in records(axes=one, seed=1)])
    b["x"] = [np.int64(v) if v == 1 and type(v) is int else v for v in b["x"]]
    frame = compare_arms(a, b)

    compared = frame[frame["stage"] == "compile"]
    # The two cases without an axis are one: the newest counts.
    assert len(compared) == len(axes) - 1
    assert set(compared["verdict"]) == {"same"}


def test_axes_that_are_called_like_columns_keep_their_values():
    frame = compare_arms(*(arm(axes={"ratio": 3, "p": 2}) for _ in range(2)))

    assert frame["axis_ratio"].tolist()[0] == 3
    assert frame["axis_p"].tolist()[0] == 2
    assert frame.columns.is_unique


def test_instruments_and_comparisons_with_baselines_are_left_out():
    frame = compare_arms(arm(workload="process"), arm(workload="reference"))

    assert frame.empty
    assert list(frame.columns) == list(COLUMNS)
    assert all(frame[name].dtype == float for name in NUMBERS)


def test_a_frame_that_is_none_is_refused():
    with pytest.raises(UsageError, match="Arm B lacks the columns machine, workload"):
        compare_arms(arm(), pd.DataFrame({"x": [1]}))


def test_ten_thousand_cases_are_compared():
    one = arm()
    one = one[one["stage"] == "compile"]
    n = 10_000

    def large(seed):
        frame = one.iloc[[0] * n].reset_index(drop=True)
        values = np.exp(np.random.default_rng(seed).normal(0, 0.02, (n, 8))).tolist()
        sizes = pd.Series(range(n), dtype=object)
        return frame.assign(size=sizes, samples=values, calibrated_samples=values)

    frame = compare_arms(large(1), large(2))

    assert len(frame) == n
    assert frame["verdict"].isin(["slower", "faster"]).sum() <= 5
