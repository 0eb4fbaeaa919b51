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

from harness.frame.differences import sections
from harness.frame.pairs import Pairs, Row
from harness.measure.machine_load import BUSY_BEFORE, BUSY_SHARE
from harness.verdicts.verdict import FULL_SHARE, Load

OVERLOADED = 4.0
"""Processes that want each core, from which on caches and memory are others': CPU time of equal
programs, measured one after the other, then differs by 17 to 30 % in most rows of a stage."""


def unlike(a: Load, b: Load) -> bool:
    """Tell whether the clock of one side met another machine than that of the other side.

    It did where others used an eighth of the cores more: from there on a sweep says of itself that
    times are longer. What the load average adds counts where others left less than half of the
    machine on both sides, or were not measured: then it must differ by 0.75 processes a core, which
    is more than a sweep makes itself, and by half of the lesser. And where so many wait on either
    side that a machine is overloaded, no two loads are known to be alike. Not known is not unlike.
    """
    cores = max(a.cores, b.cores)
    if abs(a.others - b.others) >= BUSY_SHARE * cores:
        return True
    if min(a.others, b.others) < FULL_SHARE * cores:
        return False
    if is_overloaded(a, b):
        return True
    least, most = sorted((a.average, b.average))
    return most - least > max(BUSY_BEFORE * cores, least / 2)


def is_overloaded(*loads: Load) -> bool:
    """Tell whether so many processes waited that caches and memory were others'."""
    return any(one.average >= OVERLOADED * one.cores for one in loads)


def of_row(row: Row) -> Load:
    """Return what the processes of a row met."""
    return _load([row], _met(row))


def of_arms(pairs: Pairs) -> tuple[Load, Load]:
    """Return what all processes of both arms met."""
    sides = ([row for pair in pairs.pairs if (row := pair[side]) is not None] for side in (0, 1))
    a, b = (_load(rows, _of_processes(rows)) for rows in sides)
    return a, b


_Met = tuple[float, float]


def _of_processes(rows: Sequence[Row]) -> list[_Met]:
    """Return what each process met, once where records name it."""
    named: dict[str, _Met] = {}
    for row in rows:
        named.update(zip(row.get("processes") or (), _met(row), strict=False))
    named.pop("", None)
    return [*named.values()] or [one for row in rows for one in _met(row)]


def _met(row: Row) -> list[_Met]:
    nan = [float("nan")] * row["n_processes"]
    return list(zip(row.get("others_cores") or nan, row.get("load_averages") or nan, strict=False))


def _load(rows: Sequence[Row], met: Sequence[_Met]) -> Load:
    """Return the means of what is known; NaN where a process does not know."""
    cores = max((_cores(row["environment"]) for row in rows), default=1)
    return Load(cores, *np.array(met or [(np.nan, np.nan)], np.float64).mean(axis=0).tolist())


@lru_cache(maxsize=1024)
def _cores(environment: str) -> int:
    cores = sections(environment).get("host", {}).get("cores")
    return cores if isinstance(cores, int) else os.cpu_count() or 1
