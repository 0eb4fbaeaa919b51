"""From two arms to verdicts: a row per case and stage."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.frame.differences import ARROW, row_difference
from harness.frame.frame import axis_column, objects, with_axes
from harness.frame.ratios import LEAST_PROCESSES, Estimates, estimate
from harness.verdicts import rules, statistics
from harness.verdicts.calibration import Calibration, Compared
from harness.verdicts.error_rates import ErrorRates
from harness.verdicts.pairs import Pair, Pairs, Row, either, pair
from harness.verdicts.thresholds import Scatter, scatter_of, smallest_effect

COLUMNS = (
    *("machine", "workload", "version"),
    *("target", "transform", "precision", "scenario", "stage", "a_s", "b_s", "ratio", "low"),
    *("high", "verdict", "reason", "cause", "basis", "n_a", "n_b", "p", "p_adjusted", "effect"),
    *("fingerprint_a", "fingerprint_b", "across", "calibrated_ratio"),
)
"""Columns of every comparison; one per axis stands behind `version`."""

NUMBERS = ("a_s", "b_s", "ratio", "low", "high", "p", "p_adjusted", "effect", "calibrated_ratio")
COUNTS = ("n_a", "n_b")

_NAMES = COLUMNS[: COLUMNS.index("a_s")]


def compare_arms(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    rates: ErrorRates | Sequence[ErrorRates] | None = None,
    interleaved: bool = False,
    on: Collection[str] = (),
    stages: Collection[str] = (),
    across: bool = False,
) -> pd.DataFrame:
    """Return what changed from `a` to `b`: a row per case and stage.

    Rows are paired by machine, workload, axes, target, transform, precision, scenario and stage;
    of several rows of an arm the newest counts. Comparisons with baselines and the instruments
    (`process`, `reference`) are left out. docs/method.md states the test and the rules.

    Args:
        a: a frame such as :func:`harness.load` returns.
        b: the same of the other arm.
        rates: what machines' own A/A measurements say; a case that scatters there more than its
            stage's smallest effect needs a larger one.
        interleaved: the processes of both arms took turns, so raw seconds are compared, as pairs
            in the order of `samples` where both sides have as many.
        on: columns in which the arms differ by intention, and rows of a pair need not agree.
        stages: the stages that are judged, all without any. Leave the others in the frames: the
            time of the Python loop is read off them.
        across: rows of two machines, or of unlike ones of one name, are compared, in raw seconds;
            else they are `incomparable`.

    Returns:
        Text: `machine`, `workload`, `version` (`x → y` where the sides differ), an object column
        per axis, `target`, `transform`, `precision`, `scenario`, `stage`, `verdict` (`same`,
        `faster`, `slower`, `unsure`, `incomparable`), `reason`, `cause` (`program`, `environment`,
        `machine` or ""), `across` (how the machines differ, where `across` compared them; else ""),
        `basis` (`calibrated`, `raw`, `interleaved`, "" where nothing was compared),
        `fingerprint_a`, `fingerprint_b`. Float64, NaN where not known: `a_s`, `b_s`, the medians in
        seconds; `ratio`, B / A by the basis, above 1 for slower, with its 95 % interval `low` to
        `high`; `p` for a ratio of 1, `p_adjusted` corrected for the number of rows; `effect`, the
        smallest that counts (0.05: 5 %); of rows across machines also `calibrated_ratio`, B / A of
        values divided by the reference of their own machine. Int64: `n_a`, `n_b`, processes.

    Raises:
        UsageError: `a` or `b` lacks columns that every frame has.
    """
    pairs = pair(a, b, on)
    scatter = scatter_of([rates] if isinstance(rates, ErrorRates) else rates or ())
    chosen = pairs.of_stages(stages)
    return verdicts_on(chosen, Calibration(pairs), scatter, interleaved, across)


def verdicts_on(
    pairs: Pairs,
    calibration: Calibration,
    scatter: Scatter,
    interleaved: bool = False,
    across: bool = False,
    share: float = 1.0,
) -> pd.DataFrame:
    """Return the frame that :func:`compare_arms` describes, a row per pair in their order."""
    decided = judge(pairs, calibration, scatter, interleaved, across, share)
    columns: dict[str, Any] = {name: [_joined(p, name) for p in pairs.pairs] for name in _NAMES}
    shown = {axis: axis_column(axis, COLUMNS) for axis in pairs.axes}
    for axis, column in shown.items():
        columns[column] = objects(either(p).get(axis, math.nan) for p in pairs.pairs)
    for side, name in enumerate("ab"):
        rows = [p[side] for p in pairs.pairs]
        columns[f"{name}_s"] = [row["value"] if row else math.nan for row in rows]
        columns[f"n_{name}"] = [row["n_processes"] if row else 0 for row in rows]
        columns[f"fingerprint_{name}"] = [row["fingerprint"] if row else "" for row in rows]
    columns |= {name: decided[name] for name in COLUMNS if name in decided}
    kinds: dict[str, Any] = dict.fromkeys(COLUMNS, "str")
    kinds |= dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(COUNTS, "int64")
    kinds |= dict.fromkeys(shown.values(), object)
    return pd.DataFrame(columns, columns=with_axes(COLUMNS, shown.values())).astype(kinds)


def judge(
    pairs: Pairs,
    calibration: Calibration,
    scatter: Scatter,
    interleaved: bool = False,
    across: bool = False,
    share: float = 1.0,
) -> pd.DataFrame:
    """Return what is decided on each pair, in their order, of all of them as one family.

    Args:
        pairs: what is judged together.
        calibration: of the arms that they are taken from.
        scatter: how much cases scatter between identical arms.
        interleaved: the processes of both arms took turns.
        across: machines are compared with each other.
        share: the part of the error that this look may make, of several at what comes in.
    """
    size = len(pairs.pairs)
    decisions = []
    comparable: dict[int, _Comparable] = {}
    for number, (a, b) in enumerate(pairs.pairs):
        # Arms that took turns were measured here, on whatever device they were told to use.
        reason = rules.incomparable(a, b, machines=not across and not interleaved)
        if a is not None and b is not None and not reason:
            machines = row_difference(a, b) if across else ""
            values = calibration.compared(a, b, interleaved, bool(machines))
            reason = values.problem
            if not reason:
                comparable[number] = _Comparable(a, b, values, machines)
        decisions.append(rules.Decision(rules.INCOMPARABLE, reason))
    numbers = _estimated(comparable, size, interleaved, share)
    effect, calibrated = np.full(size, np.nan), np.full(size, np.nan)
    for number, one in comparable.items():
        effect[number] = smallest_effect(scatter, one.a, one.b, pairs.axes)
        if one.machines:
            calibrated[number] = calibration.ratio(one.a, one.b)
    counts = statistics.counting(numbers.ratio, effect)
    p_adjusted = statistics.adjust(numbers.p, counts)
    family = int(np.count_nonzero(~np.isnan(numbers.p)))
    for number, one in comparable.items():
        evidence = rules.RowEvidence(
            len(one.values.a),
            len(one.values.b),
            float(numbers.ratio[number]),
            float(numbers.equivalence_low[number]),
            float(numbers.equivalence_high[number]),
            float(p_adjusted[number]),
            family,
            float(effect[number]),
            bool(counts[number]),
        )
        decisions[number] = rules.decide(evidence, one.a, one.b, bool(one.machines))
    decided = pd.DataFrame(decisions, columns=list(rules.Decision._fields))
    return decided.assign(
        basis=[comparable[n].values.basis if n in comparable else "" for n in range(size)],
        across=[comparable[n].machines if n in comparable else "" for n in range(size)],
        **{name: getattr(numbers, name) for name in ("ratio", "low", "high", "p")},
        p_adjusted=p_adjusted,
        effect=effect,
        calibrated_ratio=calibrated,
    )


class _Comparable(NamedTuple):
    """A pair that can be compared."""

    a: Row
    b: Row
    values: Compared
    machines: str
    """How the machines differ that are compared across; "" for one machine."""


def _estimated(
    comparable: Mapping[int, _Comparable], size: int, interleaved: bool, share: float
) -> Estimates:
    """Return what is known of the ratio of each pair: all those of a number of processes at once.

    Of too few processes only the ratio is, that of the medians. Processes that took turns are
    pairs, in the order of their rounds, where both sides have as many.
    """
    numbers = Estimates(*(np.full(size, np.nan) for _ in Estimates._fields))
    members: dict[tuple[int, int], list[int]] = {}
    for number, one in comparable.items():
        members.setdefault((len(one.values.a), len(one.values.b)), []).append(number)
    for processes, own in members.items():
        a = np.array([comparable[number].values.a for number in own], float)
        b = np.array([comparable[number].values.b for number in own], float)
        if min(processes) < LEAST_PROCESSES:
            numbers.ratio[own] = np.median(b, axis=1) / np.median(a, axis=1)
            continue
        turns = interleaved and processes[0] == processes[1]
        found = estimate(b, a, paired=turns, share=share)
        for column, estimates in zip(numbers, found, strict=True):
            column[own] = estimates
    return numbers


def _joined(pair: Pair, name: str) -> str:
    a, b = pair
    if a is None or b is None or a[name] == b[name]:
        return str(either(pair)[name])
    return f"{a[name]}{ARROW}{b[name]}"
