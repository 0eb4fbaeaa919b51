"""Findings as lines of text: the dearest in full, the next ones in a line each."""

from __future__ import annotations

import textwrap

from harness.profiles.answer.finding import Finding
from harness.profiles.texts import counted, duration_text, shortened

_MARGIN = 11
"""Characters in front of a finding, for its seconds."""

_SHORT = 2
"""Findings behind the dearest that are told in a line each, rather than in full, if need be."""


def listed(found: list[Finding], width: int, room: int) -> list[str]:
    """Return findings, the dearest first; as many in full as leave the next ones a line.

    A remedy is said once.
    """
    if not found:
        return []
    lines: list[str] = [""]
    shown = 0
    said: set[str] = set()
    for finding in found:
        block = _block(finding, width, with_remedy=finding.remedy not in said)
        left = len(found) - shown - 1
        # A blank line at the end, and for those that are left a line each, up to a few.
        if len(lines) + len(block) + min(left, _SHORT) + 1 > room:
            break
        lines += block
        shown += 1
        said.add(finding.remedy)
    while shown < len(found):
        left = len(found) - shown - 1
        if len(lines) + 1 + (left > 0) + 1 > room:
            break
        one = found[shown]
        place = f", {one.place}" if one.place else ""
        space = max(20, width - _MARGIN - len(place))
        text = textwrap.shorten(one.text, space, placeholder=" …") + place
        lines.append(_seconds(one.seconds) + shortened(text, width - _MARGIN))
        shown += 1
    if rest := found[shown:]:
        seconds = sum(finding.seconds for finding in rest)
        lines.append(f"{_seconds(seconds)}in {counted(len(rest), 'other finding')}")
    return [*lines, ""]


def _block(finding: Finding, width: int, with_remedy: bool) -> list[str]:
    place = f", {finding.place}" if finding.place else ""
    texts = textwrap.wrap(
        finding.text + place,
        width - _MARGIN,
        break_on_hyphens=False,
        max_lines=3,
        placeholder=" …",
    )
    remedy = finding.remedy if with_remedy else ""
    texts += textwrap.wrap(
        remedy, width - _MARGIN, break_on_hyphens=False, max_lines=2, placeholder=" …"
    )
    first = _seconds(finding.seconds)
    return [(first if not number else " " * _MARGIN) + text for number, text in enumerate(texts)]


def _seconds(seconds: float) -> str:
    return f"{duration_text(seconds):>{_MARGIN - 2}}  "
