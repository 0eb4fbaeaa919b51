"""The arithmetic of a comparison: the roofline, how much of it is reached, and when a compile pays.

The roofline is that of S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual
performance model for multicore architectures", CACM 52 (2009): no program can be faster than its
bytes at the bandwidth that the machine reaches, nor than its operations at the rate it reaches.
Ceilings are measured in the same sweep, not read off a data sheet.
"""

from __future__ import annotations

import math

FASTER_THAN_POSSIBLE = 1.05
"""A greater fraction of the roofline is an error: a cache served the bytes, or the work was not
done, or the model is wrong. Ceilings themselves are known to a few percent."""

SUSPICIOUSLY_SLOW = 0.02
"""A smaller fraction is no matter of tuning: a back end has such a case wrong now and then."""


def roofline_s(least_bytes: float, flops: float, bandwidth: float, flop_rate: float) -> float:
    """Return the least seconds that a computation can take, NaN without a ceiling for its bytes.

    Args:
        least_bytes: what any program must move: arguments once, results once.
        flops: floating-point operations; NaN or 0 where they are not known.
        bandwidth: the ceiling, bytes per second.
        flop_rate: the ceiling, operations per second; NaN where it was not measured, and then
            only the bytes count.
    """
    if not bandwidth > 0:
        return math.nan
    compute_s = flops / flop_rate if flops > 0 and flop_rate > 0 else 0.0
    return max(least_bytes / bandwidth, compute_s)


def fraction(roofline: float, took_s: float) -> float:
    """Return how much of the roofline a time reaches: 1 is all of it; NaN if either is unknown."""
    return roofline / took_s if roofline > 0 and took_s > 0 else math.nan


def break_even(
    compile_s: float, call_s: float, other_compile_s: float, other_call_s: float
) -> float:
    """Return after how many calls the one has cost no more than the other, compiling included.

    The least whole n with `compile_s + n call_s <= other_compile_s + n other_call_s`: 0 if it is
    cheaper from the start, infinite if each call is slower (or as slow, and compiling costs more);
    NaN if a time is unknown.
    """
    extra_s, saved_s = compile_s - other_compile_s, other_call_s - call_s
    if math.isnan(extra_s) or math.isnan(saved_s):
        return math.nan
    if saved_s < 0:
        return math.inf
    if extra_s <= 0:
        return 0.0
    return float(math.ceil(extra_s / saved_s)) if saved_s > 0 else math.inf
