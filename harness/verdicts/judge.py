"""From two arms to verdicts: a row per case and stage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.frame.differences import ARROW
from harness.frame.frame import axis_column, with_axes
from harness.verdicts import drift, rules, statistics
from harness.verdicts.drift import Loops
from harness.verdicts.error_rates import ErrorRates, Scatter, scatter_of, smallest_effect
from harness.verdicts.families import Family, more_slow_processes
from harness.verdicts.loads import ArmLoads
from harness.verdicts.pairs import Pair, Pairs, also_differs, either, is_broken, pair, took_turns
from harness.verdicts.proof import Equal, equal
from harness.verdicts.statistics import Floats

COLUMNS = (
    *("machine", "workload", "version"),
    *("target", "transform", "precision", "scenario", "stage", "unit", "a_s", "b_s", "ratio"),
    *(
        "low",
        "high",
        "verdict",
        "reason",
        "cause",
        "basis",
        "n_a",
        "n_b",
        "p",
        "p_adjusted",
        "effect",
    ),
    *("fingerprint_a", "fingerprint_b", "also_differs"),
    *("stage_verdict", "stage_ratio", "stage_reason", "in_turns"),
)
"""Columns of every comparison; one per axis stands behind `version`."""

NUMBERS = (
    *("a_s", "b_s", "ratio", "low", "high", "p", "p_adjusted", "effect"),
    "stage_ratio",
)
COUNTS = ("n_a", "n_b")
FLAGS = ("in_turns",)

_FAMILY = ("machine", "target", "scenario", "stage")
"""What the rows of a family share."""

_NAMES = COLUMNS[: COLUMNS.index("a_s")]


def compare_arms(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    rates: ErrorRates | Sequence[ErrorRates] | None = None,
    interleaved: bool = False,
    on: Collection[str] = (),
    stages: Collection[str] = (),
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
        stages: the stages that are returned, all without any. All are judged.

    Returns:
        Text: `machine`, `workload`, `version` (`x → y` where the sides differ), an object column
        per axis, `target`, `transform`, `precision`, `scenario`, `stage`, `unit`, `verdict`
        (`same`, `faster`, `slower`, `unsure`, `incomparable`, `broken`; `more` and `less` of a
        benchmark in another unit than seconds), `reason`, `cause` (`program`, `inputs`,
        `environment`, `calls`, `processes`, `waiting`, `load` where each side met another load,
        `machine` where it differs and nothing else does, or ""), `basis` (what the ratio is of:
        seconds without what the `others` of each process or its `loop` share, `raw` or
        `interleaved`; `wall` time, or the slowest tenth of `calls`, where these decided; "" where
        nothing was compared), `fingerprint_a`, `fingerprint_b`; `also_differs`, what else differs
        from A to B (commit, effort, versions, flags, host), besides `on`; `stage_verdict` and
        `stage_reason`, of all rows of the stage together. Float64, NaN where not known: `a_s`,
        `b_s`, seconds, geometric means over processes of what is compared, or the value in
        `unit`; `ratio`, b_s / a_s,
        above 1 for slower, with its 95 % interval `low` to `high`; `p` for a ratio of 1,
        `p_adjusted` corrected for the number of rows of the stage, NaN where the row alone cannot
        be called; `effect`, the smallest that counts (0.05: 5 %); `stage_ratio`, of the stage's
        typical case.
        Int64: `n_a`, `n_b`, processes. Bool: `in_turns`, whether the processes of both sides took
        turns.

    Raises:
        UsageError: `a` or `b` lacks columns that every frame has.
    """
    scatter = scatter_of([rates] if isinstance(rates, ErrorRates) else rates or ())
    frame = verdicts_on(pair(a, b, on), scatter, interleaved, on=on)
    if stages:
        frame = frame[frame["stage"].isin(stages)].reset_index(drop=True)
    return frame


def verdicts_on(
    pairs: Pairs,
    scatter: Scatter,
    interleaved: bool = False,
    share: float = 1.0,
    on: Collection[str] = (),
    stored_share: float = 1.0,
) -> pd.DataFrame:
    """Return the frame that :func:`compare_arms` describes, a row per pair in their order.

    Rows of one stage, machine, target and scenario that both arms share are a family: they are
    judged as a whole, and then each by itself.

    `pairs` are all that both arms have; what is hidden later is judged as well. `share` is the part
    of the error that this look at rows in turns may make, of several at what comes in, and
    `stored_share` that of a look at all others.
    """
    axes = {axis: axis_column(axis, COLUMNS) for axis in pairs.axes}
    found = [_known(one, axes) | {"also_differs": also_differs(one, on)} for one in pairs.pairs]
    members: dict[tuple[Any, ...], list[int]] = {}
    for number, (a, b) in enumerate(pairs.pairs):
        in_turns = interleaved or took_turns((a, b))
        found[number]["in_turns"] = in_turns
        # Arms that took turns were measured here, on whatever device they were told to use.
        problem = rules.without_clock(a, b, machines=not in_turns)
        if problem:
            found[number] |= problem._asdict()
            if a and b and problem.verdict in rules.BY_VALUE and min(a["value"], b["value"]) > 0:
                found[number]["ratio"] = b["value"] / a["value"]
        else:
            key = (in_turns, *(found[number][name] for name in _FAMILY))
            members.setdefault(key, []).append(number)
    loops, loads = Loops(pairs), ArmLoads(pairs)
    families = []
    for (in_turns, *_), numbers in members.items():
        rows = [(a, b) for a, b in map(pairs.pairs.__getitem__, numbers) if a and b]
        effects = np.array([smallest_effect(scatter, *row, pairs.axes) for row in rows])
        same = [equal(a, b) for a, b in rows]
        met = None if in_turns else loads
        part = share if in_turns else stored_share
        families.append(Family(rows, numbers, effects, in_turns, loops, same, met, part))
    for family, whole in zip(families, _wholes(families), strict=True):
        for number, decided in zip(family.numbers, _rows(family, whole), strict=True):
            found[number] |= decided
    kinds: dict[str, Any] = dict.fromkeys(COLUMNS, "str")
    kinds |= dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(COUNTS, "int64")
    kinds |= dict.fromkeys(FLAGS, "bool")
    columns = with_axes(COLUMNS, axes.values())
    return pd.DataFrame(found, columns=columns, dtype=object).astype(kinds)


def _known(pair: Pair, axes: Mapping[str, str]) -> dict[str, Any]:
    """Return what a row says of a pair that is not compared; `axes` are the columns of axes."""
    row = {**dict.fromkeys(COLUMNS, ""), **dict.fromkeys(NUMBERS, math.nan)}
    row |= {name: _joined(pair, name) for name in _NAMES}
    row |= {column: either(pair).get(axis, math.nan) for axis, column in axes.items()}
    for name, one in zip("ab", pair, strict=True):
        row |= {f"n_{name}": one["n_processes"] if one else 0}
        if one:
            row |= {f"fingerprint_{name}": one["fingerprint"], f"{name}_s": one["value"]}
    return row


def _wholes(families: Sequence[Family]) -> list[tuple[rules.Decision, float]]:
    """Return the verdict on each family as a whole, and the ratio of its typical case."""
    moved = [family.moved() for family in families]
    ratio, p, effect = (np.array([getattr(m, f) for m in moved]) for f in ("ratio", "p", "effect"))
    adjusted = statistics.adjust(p, statistics.counting(ratio, effect))
    tested = int(np.count_nonzero(~np.isnan(p)))
    decided = [
        rules.decide_whole(one, float(at), tested, family.pairs, family.some_unlike)
        for one, at, family in zip(moved, adjusted, families, strict=True)
    ]
    slow = {
        number: family.slow_processes()
        for number, family in enumerate(families)
        if decided[number].verdict in (rules.SAME, rules.UNSURE) and not family.some_unlike
    }
    for side in (0, 1):
        more = more_slow_processes(slow, side)
        for number, (count, p_of_share) in more.items():
            found = rules.decide_processes(
                count, len(slow[number][side]), min(1.0, p_of_share * len(slow)), side
            )
            decided[number] = found or decided[number]
    return list(zip(decided, ratio.tolist(), strict=True))


def _rows(family: Family, whole: tuple[rules.Decision, float]) -> Iterator[dict[str, Any]]:
    """Yield what is decided on each row of a family."""
    decision, whole_ratio = whole
    moved = decision.verdict in (rules.SLOWER, rules.FASTER) and decision.cause == "environment"
    # What all cases share is the finding then, and no drift.
    basis = family.whole_basis if moved else next(iter(family.candidates))
    a, b = family.candidates[basis]
    numbers = statistics.estimates(a, b, family.paired, family.share)
    pairs = family.pairs
    same = [Equal.NOTHING if moved and one is Equal.PROGRAM else one for one in family.equal]
    about = list(zip(pairs, same, family.unlike, strict=True))
    callable_ = np.array(
        [
            one is Equal.NOTHING and met is None and (moved or rules.can_be_called(*pair))
            for pair, one, met in about
        ]
    )
    counts = statistics.counting(numbers.ratio, family.effects)
    adjusted = statistics.adjust(np.where(callable_, numbers.p, np.nan), counts)
    tested = int(np.count_nonzero(~np.isnan(adjusted)))
    calls, (calls_adjusted, of_calls) = _Judged.of_calls(family)
    wall, (waiting, of_waiting) = _Judged.of_wall(family)
    n_a, n_b = (np.count_nonzero(~np.isnan(side), axis=1) for side in (a, b))
    inner = numbers.low, numbers.high
    columns = (n_a, n_b, numbers.ratio, *inner, numbers.p, adjusted, family.effects, counts)
    table = zip(*(column.tolist() for column in columns), [tested] * len(pairs), strict=True)
    clock = _Judged((a, b), numbers, family.bases[basis].tolist())
    for at, (((one, other), is_same, met), found) in enumerate(zip(about, table, strict=True)):
        row = rules.decide(rules.RowEvidence(*found), one, other, decision, is_same, met)
        judged = clock
        if is_same is Equal.NOTHING and met is None:
            ratio = float(calls.numbers.ratio[at])
            row = rules.decide_calls(row, ratio, float(calls_adjusted[at]), of_calls)
            judged = calls if row.cause == "calls" else judged
        row = rules.decide_waiting(row, waiting[at], one["stage"], family.loads[at], of_waiting)
        judged = wall if row.cause == "waiting" else judged
        yield {
            **row._asdict(),
            **judged.row(at),
            "p_adjusted": adjusted[at],
            "effect": family.effects[at],
            "stage_verdict": decision.verdict,
            "stage_ratio": whole_ratio,
            "stage_reason": decision.reason,
        }


class _Judged(NamedTuple):
    """What rows are judged by: the seconds of both sides, as logarithms, and what comes of them."""

    sides: tuple[Floats, Floats]
    numbers: statistics.Estimates
    basis: Sequence[str]

    def row(self, at: int) -> dict[str, Any]:
        """Return the columns of a row that show it."""
        names = ("ratio", "low", "high", "p")
        seconds = (math.exp(np.nanmean(side[at])) for side in self.sides)
        return {
            **{name: getattr(self.numbers, name)[at] for name in names},
            **dict(zip(("a_s", "b_s"), seconds, strict=True)),
            "basis": self.basis[at],
        }

    @classmethod
    def of_calls(cls, family: Family) -> tuple[_Judged, tuple[Floats, int]]:
        """Return what 90 % of calls do not exceed; p corrected for the rows, and how many."""
        sides = family.calls()
        numbers = statistics.estimates(*sides, family.paired, family.share)
        counts = statistics.counting(numbers.ratio, np.full(len(family.pairs), rules.CALLS_EFFECT))
        adjusted = np.where(counts, statistics.adjust(numbers.p, counts), np.nan)
        judged = cls(sides, numbers, [drift.CALLS] * len(family.pairs))
        return judged, (adjusted, int(np.count_nonzero(~np.isnan(numbers.p))))

    @classmethod
    def of_wall(cls, family: Family) -> tuple[_Judged, tuple[list[rules.Waiting], int]]:
        """Return the wall time, what waiting each row has in it, and how many were judged."""
        sides = family.wall()
        numbers = statistics.estimates(*sides, family.paired, family.share)
        rise, p = statistics.rises(*family.waiting(), family.paired, family.share)
        usual = np.exp(np.nanmean(sides[0], axis=1))
        counts = np.abs(rise) >= np.maximum(rules.WAITING_S, family.effects * usual)
        adjusted = np.nan_to_num(statistics.adjust(p, counts), nan=1.0)
        columns = rise.tolist(), adjusted.tolist(), counts.tolist(), family.expected_waiting()
        waiting = list(itertools.starmap(rules.Waiting, zip(*columns, strict=True)))
        judged = cls(sides, numbers, [drift.WALL] * len(family.pairs))
        return judged, (waiting, int(np.count_nonzero(~np.isnan(p))))


def _joined(pair: Pair, name: str) -> str:
    a, b = pair
    if a is None or b is None or is_broken(b) or a[name] == b[name]:
        return str(either(pair)[name])
    return f"{a[name]}{ARROW}{b[name]}"
