"""What a check of a cache directory finds: codes, numbers, and a command that helps."""

from __future__ import annotations

import shlex
from typing import Any, Literal

import msgspec

from harness.cache.here import Here
from harness.cache.put_cost import PutCost
from harness.cache.survey import Entry, Survey

Severity = Literal["note", "unsettled", "problem", "unusable"]

Consequence = Literal[
    "none",
    "may-still-be-written",
    "compiled-in-each-process",
    "gives-results-of-another",
    "may-crash",
    "writes-fail",
    "evicted-first",
    "never-evicted",
    "not-stored",
    "reads-fail",
    "runs-code-of-others",
    "tears-entries",
    "slow-writes",
    "never-found",
    "takes-room",
    "not-checked",
]

FixKind = Literal[
    "none",
    "repair",
    "look-again",
    "remove",
    "permission",
    "ask-owner",
    "own-directory",
    "no-cap",
    "larger-cap",
    "make-room",
    "same-setting",
    "set-clock",
    "see-why",
    "plain-path",
    "fewer-entries",
    "install-zstd",
]


class Fix(msgspec.Struct, frozen=True):
    """What to do.

    Attributes:
        command: A line for a shell, or a variable to set; empty if there is none.
    """

    kind: FixKind = "none"
    command: str = ""


class CacheFinding(msgspec.Struct, frozen=True):
    """One thing about a cache that its user should know.

    Attributes:
        check: Which check found it.
        entries: The names of the entries concerned; none if it is about the directory.
        severity: `note` leaves the cache healthy, `unsettled` may be an entry that a program is
            still writing, `problem` costs time or entries, `unusable` means that nobody should run
            programs with it as it is.
        consequence: What JAX does because of it.
        facts: What was seen: numbers, names, and the texts of errors.
    """

    check: str
    entries: tuple[str, ...]
    severity: Severity
    consequence: Consequence
    fix: Fix = Fix()
    facts: dict[str, Any] = {}


Verdict = Literal["equal", "not-deterministic", "code-differs", "wrong", "unreadable"]


class VerifiedEntry(msgspec.Struct, frozen=True):
    """One entry that was rebuilt.

    Attributes:
        verdict: `equal`: the same program, options and functions. `not-deterministic`: the same
            program and options; rebuilds differ in their code as well. `code-differs`: rebuilds
            have the same code, and the entry another. `wrong`: another program, or other options.
    """

    name: str
    verdict: Verdict
    rebuilds: int = 1


class Verification(msgspec.Struct, frozen=True):
    """What came of a verification.

    Attributes:
        exit_code: The program's own, as a shell shows it; 0 where it was ended on purpose.
    """

    entries: tuple[VerifiedEntry, ...]
    exit_code: int


SETTLE_S = 10.0
"""An entry that is younger than this may still be written."""


class Look(msgspec.Struct, frozen=True):
    """What the checks look at.

    Attributes:
        here: What JAX does with the directory.
        entries: Those that JAX wrote: other files may end with `-cache` as well.
        put_cost: The cost of a write at its number of entries, if that was measured.
        refused: Entries that XLA would not load, and its error; none if that was not tried.
        verified: Entries that were rebuilt and compared.
    """

    survey: Survey
    here: Here
    entries: tuple[Entry, ...] = ()
    put_cost: PutCost | None = None
    settle_s: float = SETTLE_S
    refused: dict[str, str] = {}
    verified: tuple[VerifiedEntry, ...] = ()

    def command(self, more: str) -> str:
        """The doctor's command on this directory, with more options."""
        return f"harness cache doctor {shlex.quote(self.survey.directory)} {more}"

    def repair(self, young: bool = False) -> Fix:
        """What the doctor repairs itself; of what is young it has to be asked again."""
        return Fix("look-again" if young else "repair", self.command("--repair" + _NOW * young))

    def remove(self, check: str) -> Fix:
        """The line that removes the entries of a check."""
        return Fix("remove", self.command(f"--names {check} | xargs -0 rm --"))

    def is_young(self, entry: Entry) -> bool:
        """Whether its writer may not have finished."""
        return abs(entry.read_at - entry.written_at) < self.settle_s


_NOW = " --settle 0"


def names(entries: list[Entry]) -> tuple[str, ...]:
    """The names of entries."""
    return tuple(entry.name for entry in entries)


def size_bytes(entries: list[Entry]) -> int:
    """What entries take."""
    return sum(entry.size_bytes for entry in entries)
