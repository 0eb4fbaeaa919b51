"""Is what a command said what the page shows, apart from numbers?"""

from __future__ import annotations

import platform
import re

MACHINE = "my-machine"
"""The name on the page of the machine that measured."""
CLEAR = ("compile",)
"""The stages that the change on the page makes slower beyond the noise of any machine."""
WIDTH = 152
"""Columns; what goes beyond is cut on the page."""

_PROGRESS = re.compile(r"\[\d+/\d+\] |(?:harness: )?wait(?:ing|ed)[: ] \d+")
"""What says how far it is, or for which other test it waits."""
_ROW = re.compile(
    r"^(\S+\.\S+)\s+(size=\d+)\s+(\w+)\s.*?\s(same|faster|slower|unsure|incomparable)\b"
)
_SLOWER = re.compile(r"\S+\.\S+ size=\d+ \w+ slower")
_COUNTS = re.compile(
    r"^(?:\d+ (?:same|faster|slower|unsure|incomparable)"
    r"(?: \(\d+ changed with an equal program\))?(?:, |$|(?=;)))+"
    r"(?:; another program in \d+ cases?)?$"
)
_NOT_LISTED = re.compile(r"^Not listed: \d+ (?:more )?\w+[,;]")
_HEAD = re.compile(r"^workload +case +stage +A ")
"""Of a table that is not there where no row needs a look."""
_ANSWER = re.compile(
    r"^(?:`[^`]+` [a-z].* (?:slower|faster|calls)\b|No significant change in|Undecided: |"
    r"In \d+ rows? nothing differs, and the machine differed)"
)
"""Which change is the largest, and what the machine did, is left to chance."""
_NUMBER = re.compile(
    r"\b[0-9a-f]{8}\b|\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?(?: ?(?:[nµm]?s|min|[kMG]?B)\b)?"
)


def shown(said: str) -> str:
    """Return what the page shows of it: no progress, long lines cut, folded ones only begun."""
    said = re.sub(rf"(?<![\w-]){re.escape(platform.node())}(?![\w-])", MACHINE, said)
    kept = []
    for line in said.strip("\n").splitlines():
        if _PROGRESS.match(line) or line.startswith(" " * 40):
            continue
        line = line.rstrip()
        kept.append(line if len(line) <= WIDTH else line[:WIDTH].rstrip() + " …")
    return "".join(f"{line}\n" for line in kept)


def _plain(line: str) -> str | None:
    """Return a line without what differs from run to run; None where a run may lack it."""
    if any(one.match(line) for one in (_COUNTS, _NOT_LISTED, _HEAD, _ANSWER)):
        return None  # the rows, and the exit code, say it
    row = _ROW.match(line)
    if row:
        verdict = row[4]
        if verdict == "incomparable" or (verdict == "slower" and row[3] in CLEAR):
            return " ".join(row.groups())
        return None  # what noise makes of the other rows is left to chance
    return " ".join(_NUMBER.sub("#", line).split())


def differences(page: str, said: str) -> list[str]:
    """Return lines that only one of both has, `-` of the page and `+` of the command.

    Order counts for nothing: tables are sorted by what was measured. A line `…` of the page stands
    for any others, and `…` at the end of a line for its rest.
    """
    wanted = page.splitlines()
    there = [plain for line in shown(said).splitlines() if (plain := _plain(line))]
    lacking = []
    for plain in filter(None, (_plain(line) for line in wanted if line != "…")):
        begun = plain.removesuffix("…").rstrip()[:90] if plain.endswith("…") else None
        equal = (one for one in there if one == plain or (begun and one.startswith(begun)))
        if found := next(equal, ""):
            there.remove(found)
        else:
            lacking.append(f"- {plain}")
    # On a busy machine a row may be called slower by chance.
    more = [] if "…" in wanted else [line for line in there if not _SLOWER.fullmatch(line)]
    return lacking + [f"+ {line}" for line in more]
