"""The inside of compiles that changed, in words. Nothing prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.frame.differences import ARROW
from harness.records.units import seconds_text, share_text
from harness.verdicts.inside import CompileChange, GroupChange

MOST_CASES = 5
MOST_GROUPS = 3
LEAST = 0.01
"""Of A's compile: what a group of passes must have changed by to be named."""


def text(change: CompileChange) -> str:
    """Return what changed most: `+16 % fusion (priority-fusion)`."""
    named = [_group_text(one) for one in change.groups if abs(one.share) >= LEAST][:MOST_GROUPS]
    return ", ".join(named) or "no group stands out"


def _group_text(one: GroupChange) -> str:
    group = f"{one.group}: {one.part}" if one.part else one.group
    return f"{_percent(one.share)} {group}" + (f" ({one.name})" if one.name else "")


def _compile_text(one: CompileChange) -> str:
    name = f"{one.workload} {one.case}".strip()
    change = f"{_percent(one.b_s / one.a_s - 1)}: {text(one)}"
    return f"{name}: {seconds_text(one.a_s)}{ARROW}{seconds_text(one.b_s)}, {change}"


def lines(changes: Sequence[CompileChange]) -> Iterator[str]:
    """Yield what is inside of the compiles that changed: all together, and the first."""
    if not changes:
        return
    yield (
        "Inside of compiles that changed, by one more of each side, traced and not timed, in "
        "seconds of all threads:"
    )
    yield from (f"  {_compile_text(one)}" for one in changes[:MOST_CASES])
    if len(changes) > MOST_CASES:
        yield f"  {len(changes) - MOST_CASES} more; --format json has all"


def document(changes: Sequence[CompileChange]) -> list[dict[str, Any]]:
    """Return the same for other programs, every group with it."""
    return [
        {
            **one._asdict(),
            "groups": [each._asdict() for each in one.groups],
            "text": _compile_text(one),
        }
        for one in changes
    ]


def _percent(share: float) -> str:
    return f"{'+' if share >= 0 else '-'}{share_text(abs(share), 1)}"
