"""Add up intervals of several threads on one clock, so that no second counts twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Nanoseconds = npt.NDArray[np.int64]


def joined(stretches: Nanoseconds) -> Nanoseconds:
    """Return stretches of time, joined where they touch: begins and ends, shape (2, n)."""
    begins, ends = stretches[:, np.argsort(stretches[0], kind="stable")]
    ends = np.maximum.accumulate(ends)
    first = np.ones(len(begins), bool)
    first[1:] = begins[1:] > ends[:-1]
    return np.stack([begins[first], ends[np.roll(first, -1)]])


@dataclass(frozen=True)
class Shared:
    """How a stretch of time divides among kinds of intervals."""

    seconds: npt.NDArray[np.float64]
    """Of each kind. Where several intervals cover a moment, each has an equal part of it."""
    begin_ns: int
    _times: npt.NDArray[np.float64]
    _idle: npt.NDArray[np.float64]

    def idle_s(self, begin_ns: int, end_ns: int) -> float:
        """Return the seconds between two moments that no interval covers."""
        if end_ns <= begin_ns:
            return 0.0
        moments = [begin_ns - self.begin_ns, end_ns - self.begin_ns]
        before, after = np.interp(moments, self._times, self._idle)
        return float(after - before) / 1e9


def share(
    kinds: Nanoseconds, begins: Nanoseconds, ends: Nanoseconds, n_kinds: int, begin: int, end: int
) -> Shared:
    """Divide the time from `begin` to `end` among intervals, by a sweep over their ends.

    The union of the intervals is counted once: the seconds of all kinds, and the idle ones, add up
    to the whole.

    Args:
        kinds: what each interval is, 0 to `n_kinds` - 1; shape (n,).
        begins: nanoseconds, shape (n,); what lies outside is cut off.
        ends: nanoseconds, shape (n,).
        n_kinds: how many kinds there are.
        begin: of the whole, nanoseconds.
        end: of the whole.
    """
    begins, ends = (np.clip(times, begin, max(begin, end)) - begin for times in (begins, ends))
    kept = ends > begins
    kinds, begins, ends = kinds[kept], begins[kept], ends[kept]
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    times = times[order].astype(np.float64)
    steps = np.repeat(np.array([1, -1]), len(begins))[order]
    kind_of = np.concatenate([kinds, kinds])[order]
    whole = float(max(0, end - begin))
    edges = np.concatenate([[0.0], times, [whole]])
    lengths = np.diff(edges)  # lengths[i] is what precedes times[i]
    active = np.concatenate([[0], np.cumsum(steps)])
    part = np.where(active > 0, lengths / np.maximum(active, 1), 0.0)
    seconds = np.zeros(n_kinds)
    for kind in np.unique(kind_of):
        count = np.concatenate([[0], np.cumsum(np.where(kind_of == kind, steps, 0))])
        seconds[kind] = float(count @ part) / 1e9
    idle = np.concatenate([[0.0], np.cumsum(np.where(active == 0, lengths, 0.0))])
    return Shared(seconds, begin, edges, idle)
