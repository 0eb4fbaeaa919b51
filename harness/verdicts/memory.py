"""Memory and sizes: rows that sizes of programs decide, which have no noise.

A release of JAX that needs 3.6 times the temporary memory is noticed where it runs out, unless
somebody looks. XLA's figures are exact on a GPU and a TPU. On a CPU they leave out what some calls
of libraries hold, so that they are shown, and decide nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from harness.frame.frame import axes_key
from harness.frame.pairs import CASE, Pair, Pairs, Row, axes_of
from harness.verdicts import verdict
from harness.verdicts.values import by_value
from harness.verdicts.verdict import SAME, UNSURE, Verdict


class Size(NamedTuple):
    """A size of a program that is a row of its own."""

    column: str
    stage: str
    """What the row is called."""
    least_bytes: float
    """The smallest change that counts, besides 10 %."""
    on_cpu: bool
    """Whether it is exact on a CPU as well."""


SIZES = {
    size.stage: size
    for size in (
        Size("temporary_bytes", "temporary memory", 1e6, False),
        Size("peak_bytes", "peak memory", 1e6, False),
        Size("code_bytes", "machine code", 1e5, True),
        Size("entry_bytes", "executable", 1e5, True),
    )
}

ESTIMATE = "estimate"
"""The cause of `unsure` where a figure is XLA's, and leaves something out."""


def with_sizes(pairs: Pairs) -> Pairs:
    """Return pairs with one more for each size of a case that changed by what counts."""
    changed: dict[Any, Pair] = {}
    for a, b in pairs.pairs:
        if a is None or b is None or (a["status"], b["status"]) != ("ok", "ok"):
            continue
        for stage, size in SIZES.items():
            before, after = a.get(size.column), b.get(size.column)
            # NaN is not equal to itself, and large enough a change is none of it either.
            if before is None or after is None or not abs(after - before) >= size.least_bytes:
                continue
            case = *(str(a[name]) for name in CASE[:-1]), axes_key(axes_of(a, pairs.axes))
            about = {"stage": stage, "unit": "bytes"}
            one, other = {**a, **about, "value": before}, {**b, **about, "value": after}
            if by_value(one, other).kind != SAME:
                changed.setdefault((stage, a["machine"], *case), (one, other))
    return pairs._replace(pairs=[*pairs.pairs, *changed.values()])


def judged(a: Row | None, b: Row | None) -> Verdict | None:
    """Return the verdict on a pair of :func:`with_sizes`; None on any other."""
    if a is None or b is None or a["stage"] not in SIZES or a["unit"] != "bytes":
        return None
    decided = by_value(a, b)
    if a["target"] == "cpu" and not SIZES[a["stage"]].on_cpu:
        return replace(decided, kind=UNSURE, cause=ESTIMATE)
    return replace(decided, cause=verdict.PROGRAM)
