"""The words of `harness profile patch`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.records.units import counted, seconds_text

if TYPE_CHECKING:
    from harness.patches.proof import NotPatched, Patches, Proven
    from harness.profiles.finding import Finding

REASONS = {
    "alone-only": "it works alone, but not together with the slower ones ({detail})",
    "builds-more": "with it `{detail}` is built more often",
    "builds-stay": "it would still be built {detail} times",
    "captured-changes": "`{detail}`, which it captures, changes afterwards",
    "changing-global": "it reads `{detail}`, which changes while the program runs",
    "computed": "{detail} is computed",
    "decorators": "`{detail}` has several decorators",
    "default": "a default, {detail}, is of the function around it",
    "differs": "results differ ({detail})",
    "donation": "it donates its arguments",
    "effects": "it does more than compute ({detail})",
    "elsewhere": "it is in {detail}, outside the project",
    "empty-body": "nothing would be left of the function around it",
    "escapes": "`{detail}` is passed on, and captures what would have to be an argument",
    "has-a-dtype": "{detail} has a dtype already",
    "made-elsewhere": "what is passed is made elsewhere: {detail}",
    "no-import": "the file imports nothing, so {detail} cannot be added",
    "no-kind": "a change to make by hand",
    "no-place": "the place is not found{of}",
    "not-observable": "two runs as it is agree on no output, file or result to compare with",
    "options": "what jit is given, {detail}, is made in the function around it",
    "other-dtype": "{detail} is no dtype that is written",
    "overlaps": "another change is in the same place",
    "parameters": "its parameters do not leave room for what it captures",
    "raises": "it raises: {detail}",
    "rebound": "`{detail}` is assigned again",
    "recursive": "`{detail}` calls itself",
    "several-places": "`{detail}` is jitted in several places",
    "shares-a-line": "several statements share a line: {detail}",
    "unreadable": "the file cannot be read: {detail}",
    "whole-object": "it uses `{detail}` as a whole, which is no array",
}
"""Why a remedy is not written as a change, by code."""


def reason_text(left: NotPatched) -> str:
    """Return why a finding's remedy is not written."""
    of = f": `{left.detail}`" if left.detail else ""
    return REASONS[left.reason].format(detail=left.detail, of=of)


def about(finding: Finding) -> str:
    """Return `relax` (train.py:12)."""
    where = f" ({finding.sites[0]})" if finding.sites else ""
    return f"`{finding.function.name}`{where}"


def answer(proof: Patches) -> str:
    """Return the first line."""
    every = len(proof.proven) + len(proof.left)
    if not proof.proven:
        return f"No patch: none of {counted(every, 'remedy')} is both safe and effective."
    saved = seconds_text(sum(one.saved_s for one in proof.proven))
    part = f"{len(proof.proven)} of {counted(every, 'remedy')}"
    of = seconds_text(proof.building_s)
    return f"Patched: {part}. It saves {saved} of {of} (measured), results equal."


def proven_line(one: Proven) -> str:
    """Return a line about a change that holds."""
    before, after = one.builds
    saved = f"saves {seconds_text(one.saved_s)} of {seconds_text(one.seconds[0])}"
    remedy = one.proposal.finding.remedy
    identifier = f" ({remedy.id})" if remedy else ""
    return f"{about(one.proposal.finding)}: {saved}, {before} builds → {after}{identifier}"


def left_lines(proof: Patches) -> Iterator[str]:
    """Yield a line for each remedy that is not written, and why."""
    for one in proof.left:
        remedy = one.finding.remedy
        identifier = f" ({remedy.id})" if remedy else ""
        yield f"{about(one.finding)}{identifier}: {reason_text(one)}."
