"""Which verdict follows from which evidence."""

from __future__ import annotations

import math
import random

import numpy as np
import pandas as pd
import pytest

from harness.errors import UsageError
from harness.frame.load import frame_of
from harness.program.facts import Facts
from harness.records.distribution import Distribution
from harness.verdicts.error_rates import METHOD, SCHEMA, ErrorRates, Noise, Rate
from harness.verdicts.rules import kind_of
from harness.verdicts.table import COLUMNS, NUMBERS, WORDS
from tests.frame.trees import failed, record
from tests.verdicts.arms_of import arm, records
from tests.verdicts.words import compare_arms


def only(a, b, **options):
    """Return the one row of a comparison that is not of a stage without samples."""
    frame = compare_arms(a, b, **options)
    compared = frame[frame["evidence"] != ""]
    assert len(compared) == 1
    return compared.iloc[0]


def row_of(a, b, stage="compile", **options):
    """Return the row of one stage, whatever became of it."""
    return compare_arms(a, b, **options).set_index("stage").loc[stage]


def test_a_clear_slow_down_is_slower_and_a_clear_gain_faster():
    slower, faster = only(arm(), arm(1.2)), only(arm(1.2), arm())

    assert (slower["verdict"], faster["verdict"]) == ("slower", "faster")
    assert slower["ratio"] == pytest.approx(1.2, rel=0.03)
    assert faster["ratio"] == pytest.approx(1 / slower["ratio"])
    assert slower["low"] < slower["ratio"] < slower["high"]
    assert slower["reason"].startswith("20 % slower in wall time (threshold 5 %), p = ")
    assert slower["p_adjusted"] <= 0.05
    assert (slower["evidence"], slower["clock"], slower["cause"]) == ("clock", "wall", "")
    assert (slower["n_a"], slower["n_b"], slower["effect"]) == (8, 8, 0.05)
    assert slower["a_s"] == pytest.approx(1e-3, rel=0.02)
    assert slower["b_s"] == pytest.approx(1.2e-3, rel=0.02)
    # Without any spread there is no interval, and no warning.
    for factor, verdict, p in ((1, "same", 1), (2, "slower", 0)):
        row = only(arm(spread=0), arm(factor, spread=0))
        assert (row["verdict"], row["p"]) == (verdict, p)
        assert row["low"] == row["high"] == pytest.approx(factor)
    # A stray process leaves a slow-down unsure, and never the same.
    a, b = records(), records(1.2)
    a[3].stages["compile"].samples_ns = [9e6] * 3
    assert only(frame_of(a), frame_of(b))["verdict"] == "unsure"


@pytest.mark.parametrize(
    ("spread", "factor", "seed", "verdict", "said"),
    [
        (0.01, 1, 1, "same", "less than 5 % in wall time, and surely less than 10 %"),
        (0.3, 1.0, 0, "unsure", "reaches beyond 10 %; more processes would tell"),
        (0.002, 1.03, 0, "same", "less than 5 % in wall time, and surely less than 10 %"),
        (0.5, 1.3, 2, "unsure", "may be chance"),
    ],
)
def test_what_is_neither_surely_different_nor_surely_the_same_is_unsure(
    spread, factor, seed, verdict, said
):
    row = only(arm(spread=spread), arm(factor, spread=spread, seed=seed))

    assert row["verdict"] == verdict
    assert said in row["reason"]
    assert (row["p_adjusted"] < 0.05) == (factor == 1.03)


@pytest.mark.parametrize(
    ("n_a", "n_b", "said"),
    [
        (1, 1, "2 more of A and 2 more of B"),
        (2, 8, "at least 1 more of A;"),
        (8, 2, "at least 1 more of B;"),
    ],
)
def test_too_few_processes_are_unsure_and_the_reason_says_how_many_more(n_a, n_b, said):
    row = only(arm(3, n=n_a), arm(6, n=n_b))

    assert row["verdict"] == "unsure"
    assert f"too few processes ({n_a} and {n_b}): " in row["reason"]
    assert said in row["reason"]
    assert row["ratio"] == pytest.approx(2, rel=0.1)  # of the medians, in whatever unit
    assert row[["p", "low", "high", "p_adjusted"]].isna().all()


def test_rows_that_change_by_less_than_counts_do_not_lower_the_bar_for_the_others():
    sizes = list(range(100, 160))

    def among(factor):
        """Return p and verdicts of a doubtful row among rows that changed by a factor."""
        a, b = (records(spread=0.05), records(1.06, spread=0.05, seed=1))
        for size in sizes:
            a += records(axes={"size": size}, spread=0.04, seed=size)
            b += records(factor, axes={"size": size}, spread=0.04, seed=-size)
        frame = compare_arms(frame_of(a), frame_of(b), stages=["compile"]).set_index("size")
        return frame["p"], frame["p_adjusted"], frame["verdict"]

    # Changes that count are what a user looks for: they make a further one more likely.
    p, adjusted, verdict = among(1.3)
    assert p[8] < 0.05
    assert adjusted[8] == pytest.approx(p[8])
    assert verdict[8] == "slower"
    p, adjusted, verdict = among(1.04)
    assert (p[sizes] < 0.05).sum() > 20
    assert adjusted[8] > 3 * p[8]


@pytest.mark.parametrize("stage", ["execute", "dispatch", "load"])
def test_a_changed_time_of_an_equal_program_is_the_environment(stage):
    a = arm(stages=(stage,), fingerprint="f1")
    named = only(a, arm(2, stages=(stage,), fingerprint="f1", jax="0.11.2"))
    unexplained = only(a, arm(2, stages=(stage,), fingerprint="f1"))

    assert (named["verdict"], named["cause"]) == ("slower", "environment")
    assert "; environment: jax 0.10.2 → 0.11.2, flags equal; the program is the" in named["reason"]
    assert (unexplained["verdict"], unexplained["cause"]) == ("slower", "environment")
    assert "environment: nothing that is recorded differs" in unexplained["reason"]
    assert only(arm(fingerprint="f1"), arm(2, fingerprint="f1"))["verdict"] == "slower"


def test_same_never_contradicts_the_interval_that_is_shown():
    """An equal program whose inputs are not recorded is the same where its interval says so."""
    about = {"stages": ("execute",), "fingerprint": "f1"}
    wide = only(arm(**about, spread=0.5), arm(**about, spread=0.5, seed=1))
    assert wide["verdict"] == "unsure"
    assert wide["low"] < 1 < wide["high"]
    narrow = only(arm(**about), arm(**about, seed=1))
    assert narrow["verdict"] == "same"
    assert 1 / 1.3 < narrow["low"] < narrow["high"] < 1.3
    assert only(arm(**about, n=2), arm(**about, seed=1))["verdict"] == "unsure"


def test_slower_by_some_calls_shows_what_is_said_of_those_calls():
    a, b = (records(stages=("execute",), spread=0.02, seed=seed) for seed in (0, 1))
    for number, one in enumerate((*a, *b)):
        slow = 3 if number >= len(a) else 1
        ns = one.stages["execute"].samples_ns[0]
        one.stages["execute"].calls = Distribution.of([ns] * 50 + [slow * ns] * 50)
    row = only(frame_of(a), frame_of(b))
    assert (row["verdict"], row["evidence"]) == ("slower", "calls")
    assert row["low"] > 1
    assert row["ratio"] == pytest.approx(3, rel=0.1)
    assert row["b_s"] / row["a_s"] == pytest.approx(row["ratio"])


def test_verdicts_and_intervals_never_contradict_each_other():
    """Among few rows and many, whatever scatters: the interval that is shown says the verdict."""
    rng = random.Random(1)
    a, b = [], []
    for size in range(300):
        about = {"axes": {"size": size}, "spread": rng.choice([0.005, 0.02, 0.1, 0.4])}
        a += records(**about, seed=size)
        b += records(rng.choice([1, 1, 1, 1.03, 1.06, 1.2, 0.8, 3]), **about, seed=-size)
    frame = compare_arms(frame_of(a), frame_of(b), stages=["compile"])
    assert set(frame["verdict"]) == {"slower", "faster", "same", "unsure"}
    for row in frame.to_dict("records"):
        expected = kind_of(row["ratio"], row["low"], row["high"], row["effect"])
        assert row["verdict"] == expected
        counts = max(row["ratio"], 1 / row["ratio"]) >= 1 + row["effect"]
        assert (row["verdict"] in ("slower", "faster")) == (counts and row["p_adjusted"] <= 0.05)
        assert row["low"] <= row["ratio"] <= row["high"]


def test_another_program_is_named_with_the_difference_of_its_facts():
    a = arm(stages=("execute",), fingerprint="f1", facts=Facts(fusions=2, temporary_bytes=0))
    facts = Facts(fusions=3, temporary_bytes=4096)
    slower = only(a, arm(2, stages=("execute",), fingerprint="f2", facts=facts))
    same = only(a, arm(stages=("execute",), fingerprint="f2", facts=facts))

    assert (slower["verdict"], slower["cause"]) == ("slower", "program")
    assert (slower["fingerprint_a"], slower["fingerprint_b"]) == ("f1", "f2")
    assert slower["reason"].endswith("; program: +1 fusion, +4.1 kB temporary")
    assert (same["verdict"], same["cause"]) == ("same", "program")
    assert "program" not in same["reason"]


def rates_of(ratios, **fields):
    """Return the rates of a machine on which ten cases show the same `ratios`, or each its own."""
    rate = Rate(0, 400, 0.0, 0.009)
    by_size = ratios if isinstance(ratios, dict) else dict.fromkeys(range(1, 11), ratios)
    case = ("cpu", "forward", "", "off", "compile")
    noise = [
        Noise("family.Work", "1.aaaa", {"size": size}, *case, list(own))
        for size, own in by_size.items()
    ]
    return ErrorRates(**{
        "schema": SCHEMA, "machine": "box", "env": "e", "commit": "c", "started_at_ms": 1,
        "effort": "default", "pairs": 3, "flagged": rate, "flagged_by_stage": {},
        "flagged_by_asv": rate, "noise": noise, "power": [], "method": METHOD, **fields,
    })  # fmt: skip


def test_a_machine_that_scatters_between_identical_arms_needs_a_larger_effect():
    calm = only(arm(), arm(1.2), rates=rates_of([1.01, 0.99]))
    noisy = only(arm(), arm(1.2), rates=rates_of([1.3, 1 / 1.3]))
    elsewhere = only(arm(), arm(1.2), rates=[rates_of([1.3], machine="other")])

    assert (calm["effect"], calm["verdict"]) == (0.05, "slower")
    assert noisy["effect"] == pytest.approx(0.3)
    assert noisy["verdict"] != "slower"
    assert elsewhere["effect"] == 0.05


def test_what_cannot_be_compared_says_why():
    bad = frame_of([failed(reason="ValueError: no")])
    skipped = frame_of([record(stages={}, status="skipped", reason="no such device")])
    found = [
        (arm(), bad, "B failed: ValueError: no"),
        (skipped, arm(), "A skipped: no such device"),
        (bad, bad, "A and B failed: ValueError: no"),
        (arm(), arm(version="2.bbbb"), "the workload or the method changed: 1.aaaa → 2.bbbb"),
        (arm(), arm(protocol="1 passes x 4 blocks"), "processes did different things: 3 passes"),
        (
            arm(),
            arm().assign(method=2),
            "compile is taken in another way since A, by method 1 and 2",
        ),
        (arm(), arm().assign(n_processes=9), "B does not say which samples are of which process"),
    ]
    for value in (math.nan, 0.0, -1.0, math.inf):
        b = arm().assign(samples=[[value] * 8])
        found.append((arm(), b, f"B has a sample that is no time: {value} s"))
    for a, b, said in found:
        row = row_of(a, b)
        assert row["verdict"] == ("broken" if said.startswith("B failed") else "incomparable")
        assert (row["reason"].startswith(said), row["evidence"]) == (True, "")
    assert row_of(arm(), arm(version="2.bbbb"))["version"] == "1.aaaa → 2.bbbb"

    frame = compare_arms(arm(fingerprint="f1"), arm(workload="family.Other", fingerprint="f2"))
    assert set(frame["verdict"]) == {"incomparable"}
    assert frame["reason"].tolist() == ["only in A", "only in B"]
    assert frame["fingerprint_a"].tolist() == ["f1", ""]
    assert frame["fingerprint_b"].tolist() == ["", "f2"]
    assert frame[["n_a", "n_b"]].to_numpy().tolist() == [[8, 0], [0, 8]]


def test_the_newest_row_of_a_case_counts_and_one_without_a_date_is_the_oldest():
    old, new = arm(3, started_at_ms=1_000), arm(1.2, started_at_ms=2_000)
    undated = arm(5)
    undated["started_at"] = pd.Series(pd.NaT, undated.index, undated["started_at"].dtype)
    future = arm(1.2, started_at_ms=99_000_000_000_000)
    for rows in ([undated, new, old], [new, old, undated], [future]):
        row = only(arm(), pd.concat(rows, ignore_index=True))
        assert row["ratio"] == pytest.approx(1.2, rel=0.05)


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
    frame = compare_arms(*(arm(axes={"ratio": 3, "p": 2}) for _ in range(2)))  # called as columns
    assert (frame["axis_ratio"].tolist()[0], frame["axis_p"].tolist()[0]) == (3, 2)
    assert frame.columns.is_unique


def test_instruments_and_comparisons_with_baselines_are_left_out():
    frame = compare_arms(arm(workload="process"), arm(workload="reference"))

    assert frame.empty
    assert list(frame.columns) == [*COLUMNS, *WORDS]
    assert all(frame[name].dtype == float for name in NUMBERS)
    assert compare_arms(arm().assign(threads="1"), arm().assign(threads="all")).empty
    with pytest.raises(UsageError, match="Arm B lacks the columns machine, workload"):
        compare_arms(arm(), pd.DataFrame({"x": [1]}))


def test_half_of_the_cases_are_not_the_stage_as_a_whole():
    sizes = (1, 2, 3, 4)
    a = pd.concat([arm(axes={"size": n}, seed=n) for n in sizes], ignore_index=True)
    b = [arm(axes={"size": n}, seed=10 + n, factor=1.3 if n < 3 else 1.0) for n in sizes]
    half = compare_arms(a, pd.concat(b, ignore_index=True), in_turns=True)
    assert not set(half["stage_verdict"]) & {"slower", "faster"}
    assert sorted(half["verdict"]) == ["same", "same", "slower", "slower"]
    b[2] = arm(axes={"size": 3}, seed=13, factor=1.3)
    most = compare_arms(a, pd.concat(b, ignore_index=True), in_turns=True)
    assert set(most["stage_verdict"]) == {"slower"}
