"""How busy the machine was beside each arm, and whether that was alike: the one rule of it.

Two measures, since each is blind where the other sees. How many cores others used is exact, but has
an end: beside two busy loops or six, a machine of two cores has no idle time. The load average
knows how many wait, but lags, and counts the measuring process with them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from harness.engine.machine_load import BUSY_BEFORE, BUSY_SHARE
from harness.frame.differences import sections
from harness.verdicts.pairs import Pairs, Row
from harness.verdicts.verdict import FULL_SHARE, Load


def unlike(a: Load, b: Load) -> bool:
    """Tell whether the clock of one side met another machine than that of the other side.

    It did where others used an eighth of the cores more: from there on a sweep says of itself that
    times are longer. What the load average adds counts where others left less than half of the
    machine on both sides, or were not measured: then it must differ by 0.75 processes a core, which
    is more than a sweep makes itself, and by half of the lesser. Not known is not unlike.
    """
    cores = max(a.cores, b.cores)
    if abs(a.others - b.others) >= BUSY_SHARE * cores:
        return True
    if min(a.others, b.others) < FULL_SHARE * cores:
        return False
    least, most = sorted((a.average, b.average))
    return most - least > max(BUSY_BEFORE * cores, least / 2)


def of_arms(pairs: Pairs) -> tuple[Load, Load]:
    """Return what all processes of both arms met."""
    met = ArmLoads(pairs)
    rows = ([one[side] for one in pairs.pairs] for side in (0, 1))
    a, b = (
        met.of_arm([row for row in of_side if row is not None], side)
        for side, of_side in enumerate(rows)
    )
    return a, b


_Met = tuple[float, float]


class ArmLoads:
    """What the processes of two arms met, by the name of the process."""

    def __init__(self, pairs: Pairs) -> None:
        """Take all pairs: a row's CPU time may be of processes that other rows name."""
        self._named: list[dict[str, _Met]] = [{}, {}]
        for pair in pairs.pairs:
            for known, row in zip(self._named, pair, strict=True):
                if row is not None:
                    known.update(zip(row.get("processes") or (), _met(row), strict=False))
        for known in self._named:
            known.pop("", None)  # of records that do not name their process

    def of(self, row: Row, side: int, processes: Sequence[str]) -> Load:
        """Return what the processes of a row of A, side 0, or of B met."""
        known = self._named[side]
        met = [known[name] for name in processes if name in known] or _met(row)
        return Load(_cores(row["environment"]), *_means(met))

    def of_arm(self, rows: Sequence[Row], side: int) -> Load:
        """Return what all processes of an arm met."""
        met = [*self._named[side].values()] or [one for row in rows for one in _met(row)]
        return Load(max((_cores(row["environment"]) for row in rows), default=1), *_means(met))


@lru_cache(maxsize=1024)
def _cores(environment: str) -> int:
    cores = sections(environment).get("host", {}).get("cores")
    return cores if isinstance(cores, int) else os.cpu_count() or 1


def _met(row: Row) -> list[_Met]:
    nan = [float("nan")] * row["n_processes"]
    return list(zip(row.get("others_cores") or nan, row.get("load_averages") or nan, strict=False))


def _means(met: Sequence[_Met]) -> tuple[float, float]:
    """Return the means of what is known; NaN where a process does not know."""
    if not met:
        return float("nan"), float("nan")
    others, averages = np.array(met, np.float64).mean(axis=0).tolist()
    return others, averages
