"""Compare two arms: a row per case and stage, with the verdict and its reason."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.errors import UsageError
from harness.frame.environment_difference import ARROW, environment_difference
from harness.frame.facts_difference import facts_difference
from harness.frame.frame import axis_column, axis_columns, objects
from harness.frame.machines import row_difference
from harness.frame.ratios import estimate
from harness.program.facts import TOTALS
from harness.verdicts import effects, pairing, rules, statistics
from harness.verdicts.error_rates import ErrorRates
from harness.verdicts.incomparable import incomparable, program_of
from harness.verdicts.rows import Row, rows_at
from harness.verdicts.values import Chooser, Values

if TYPE_CHECKING:
    import pandas as pd

BEFORE = ("machine", "workload", "version")
AFTER = (
    *("target", "transform", "precision", "scenario", "stage", "a_s", "b_s", "ratio", "low"),
    *("high", "verdict", "reason", "cause", "basis", "n_a", "n_b", "p", "p_adjusted", "effect"),
    *("fingerprint_a", "fingerprint_b", "across", "calibrated_ratio"),
)
COLUMNS = (*BEFORE, *AFTER)
"""Columns of every comparison; one per axis stands behind `version`."""

Pair = tuple[Row | None, Row | None]

NUMBERS = ("a_s", "b_s", "ratio", "low", "high", "p", "p_adjusted", "effect", "calibrated_ratio")
COUNTS = ("n_a", "n_b")

_TEXTS = ("machine", "workload", "version", "target", "transform", "precision", "scenario", "stage")


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
        interleaved: the processes of both arms took turns, so raw seconds are compared.
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
    import pandas as pd

    first, second, axes = paired_rows(a, b, on)
    chooser = Chooser(first, second, axes)
    pairs = [
        (x, y)
        for x, y in zip(first, second, strict=True)
        if not stages or either(x, y)["stage"] in stages
    ]
    comparison = _Comparison(pairs, axes, chooser, interleaved, across)
    comparison.measure(effects.for_machines(rates))
    data = comparison.columns()
    shown = [axis_column(axis, COLUMNS) for axis in axes]
    frame = pd.DataFrame(data, columns=[*BEFORE, *shown, *AFTER])
    kinds: dict[str, Any] = dict.fromkeys(COLUMNS, "str")
    kinds |= dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(COUNTS, "int64")
    kinds |= dict.fromkeys(shown, object)
    return frame.astype(kinds)


def paired_rows(
    a: pd.DataFrame, b: pd.DataFrame, on: Collection[str] = ()
) -> tuple[list[Row | None], list[Row | None], list[str]]:
    """Return the rows of `a`, those of `b` that belong to them, and the columns that hold axes.

    Both lists are as long as the comparison, in its order, with None where an arm has no row.
    """
    _check(a, b)
    a, b = (pairing.comparable_rows(arm).reset_index(drop=True) for arm in (a, b))
    axes = [
        name
        for name in dict.fromkeys((*axis_columns(a), *axis_columns(b)))
        if any(name in arm.columns and arm[name].notna().any() for arm in (a, b))
    ]
    pairs = pairing.pair(a, b, axes, on)
    names = (*_NEEDED, *TOTALS, *axes)
    first, second = (rows_at(arm, pairs[x].to_list(), names) for arm, x in ((a, "a"), (b, "b")))
    return first, second, axes


def _check(*arms: pd.DataFrame) -> None:
    for arm, frame in zip("AB", arms, strict=True):
        needed = (*_NEEDED, "threads", "unit")
        lacking = [name for name in needed if name not in frame.columns]
        if lacking:
            raise UsageError(
                f"Arm {arm} lacks the columns {', '.join(lacking)}: expected a frame such as "
                "harness.load returns."
            )


_NEEDED = (
    *(*_TEXTS, "value", "samples", "calibrated_samples", "n_processes", "status", "reason"),
    *("fingerprint", "effort", "environment", "started_at", "python", "jax", "jaxlib"),
    *("commit", "dirty", "env", "night"),
)


class _Comparison:
    """Pairs of rows on their way to verdicts."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        axes: Sequence[str],
        chooser: Chooser,
        interleaved: bool,
        across: bool,
    ) -> None:
        self._pairs = pairs
        self._axes = axes
        self._values: dict[int, Values] = {}
        self._rows: dict[int, tuple[Row, Row]] = {}
        self._said: dict[int, rules.Decision] = {}
        self._across: dict[int, str] = {}
        self._numbers = {name: np.full(len(self._pairs), np.nan) for name in NUMBERS}
        self._low, self._high = (np.full(len(self._pairs), np.nan) for _ in range(2))
        self._counts = np.zeros(len(self._pairs), bool)
        for number, (a, b) in enumerate(self._pairs):
            for name, row in (("a_s", a), ("b_s", b)):
                self._numbers[name][number] = row["value"] if row else math.nan
            # Arms that took turns were measured here, on whatever device they were told to use.
            reason = incomparable(a, b, machines=not across and not interleaved)
            if a is None or b is None or reason:
                self._said[number] = rules.Decision(rules.INCOMPARABLE, reason)
                continue
            machines = row_difference(a, b) if across else ""
            values = chooser.values(a, b, interleaved, bool(machines))
            if values.problem:
                self._said[number] = rules.Decision(rules.INCOMPARABLE, values.problem)
            else:
                if machines:
                    self._across[number] = machines
                    self._numbers["calibrated_ratio"][number] = chooser.calibrated_ratio(a, b)
                self._values[number] = values
                self._rows[number] = a, b

    def measure(self, noise: effects.Noises) -> None:
        """Estimate all ratios, correct p for their number, and decide."""
        numbers = self._numbers
        sizes: dict[tuple[int, int], list[int]] = {}
        for number, found in self._values.items():
            sizes.setdefault((len(found.a), len(found.b)), []).append(number)
        for (n_a, n_b), members in sizes.items():
            a = np.array([self._values[number].a for number in members], float)
            b = np.array([self._values[number].b for number in members], float)
            if min(n_a, n_b) < rules.LEAST_PROCESSES:
                numbers["ratio"][members] = np.median(b, axis=1) / np.median(a, axis=1)
                continue
            estimates = estimate(b, a)
            for name in ("ratio", "low", "high", "p"):
                numbers[name][members] = getattr(estimates, name)
            self._low[members] = estimates.equivalence_low
            self._high[members] = estimates.equivalence_high
        for number, pair in self._rows.items():
            numbers["effect"][number] = noise.effect(*pair, self._axes)
        self._counts = statistics.counting(numbers["ratio"], numbers["effect"])
        numbers["p_adjusted"] = statistics.adjust(numbers["p"], self._counts)
        family = int(np.count_nonzero(~np.isnan(numbers["p"])))
        for number, pair in self._rows.items():
            self._said[number] = rules.decide(self._evidence(number, *pair, family))

    def _evidence(self, number: int, a: Row, b: Row, family: int) -> rules.Evidence:
        numbers, values = self._numbers, self._values[number]
        return rules.Evidence(
            a["stage"],
            len(values.a),
            len(values.b),
            float(numbers["ratio"][number]),
            float(self._low[number]),
            float(self._high[number]),
            float(numbers["p_adjusted"][number]),
            family,
            float(numbers["effect"][number]),
            bool(self._counts[number]),
            program_of(a, b),
            lambda: facts_difference(a, b),
            lambda: _environment_difference(a["environment"], b["environment"]),
            number in self._across,
        )

    def columns(self) -> dict[str, Any]:
        """Return the columns of the comparison."""
        found: dict[str, Any] = {
            name: [_joined(a, b, name) for a, b in self._pairs] for name in _TEXTS
        }
        for axis in self._axes:
            found[axis_column(axis, COLUMNS)] = objects(
                either(a, b).get(axis, math.nan) for a, b in self._pairs
            )
        said = [self._said[number] for number in range(len(self._pairs))]
        found |= {
            "verdict": [decision.verdict for decision in said],
            "reason": [decision.reason for decision in said],
            "cause": [decision.cause for decision in said],
            "across": [self._across.get(number, "") for number in range(len(self._pairs))],
            "basis": [
                self._values[number].basis if number in self._values else ""
                for number in range(len(self._pairs))
            ],
        }
        for arm, side in (("a", 0), ("b", 1)):
            rows = [pair[side] for pair in self._pairs]
            found[f"n_{arm}"] = [row["n_processes"] if row else 0 for row in rows]
            found[f"fingerprint_{arm}"] = [row["fingerprint"] if row else "" for row in rows]
        return found | self._numbers


def either(a: Row | None, b: Row | None) -> Row:
    """Return the row of the arm that has one, A's where both have."""
    return a if a is not None else b if b is not None else {}


def _joined(a: Row | None, b: Row | None, name: str) -> str:
    if a is None or b is None or a[name] == b[name]:
        return str(either(a, b)[name])
    return f"{a[name]}{ARROW}{b[name]}"


@lru_cache(maxsize=1024)
def _environment_difference(before: str, after: str) -> str:
    return environment_difference(before, after)
