"""When a live comparison looks at what it has, and what each look may cost."""

from __future__ import annotations

from collections.abc import Sequence

FIRST = 4
"""Rounds before the first look; then after every as many again. With fewer rounds hardly any p is
small enough for a family of rows, and no interval narrow enough."""


def next_look(done: int, limit: int) -> int:
    """Return after how many rounds to look next; none stands just before the limit."""
    following = done + FIRST
    return following if limit - following >= FIRST / 2 else limit


def share(looks: Sequence[int], limit: int) -> float:
    """Return which part of the error the last of several looks may make.

    After n of N rounds a part (n / N)² of the error is spent, and a look may make what was added
    since the one before it, n² / N² - m² / N²: more, the more it knows. Whenever and however often
    one looks, all looks together make no more errors than one would; nothing is assumed of how they
    depend on each other. The function is that of K. Kim and D. L. DeMets, Biometrika 74 (1987)
    149-154, with the power 2.

    `looks` are the rounds that were done at each look, the last one now.
    """
    before = looks[-2] if len(looks) > 1 else 0
    return (looks[-1] * looks[-1] - before * before) / (limit * limit)
