"""What may ail a cache directory: findings, each with its evidence and its remedy."""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.cache.put_cost import PutCost
from harness.errors import ExitCode

Kind = Literal[
    "empty",
    "torn",
    "garbage",
    "orphaned",
    "unreadable",
    "unchecked",
    "duplicate",
    "never-read",
    "foreign-version",
    "others-can-write",
    "no-filelock",
    "future",
    "slow-put",
]
Severity = Literal["note", "ailing", "unusable"]
State = Literal["healthy", "ailing", "unusable"]

BAD: frozenset[Kind] = frozenset({"empty", "torn", "garbage", "orphaned"})
"""The kinds that --quarantine moves aside."""

EXIT_CODES: dict[State, ExitCode] = {
    "healthy": ExitCode.FINE,
    "ailing": ExitCode.WORSE,
    "unusable": ExitCode.UNUSABLE,
}

REMEDY = {
    "empty": "JAX never replaces it and compiles anew each time. --quarantine moves it aside; the "
    "next run writes it again.",
    "orphaned": "Under a size cap jax 0.10.2 fails every write while there is one; later releases "
    "evict it first. --quarantine moves it aside. If many are, some programs use this directory "
    "without the cap that others have: give all the same.",
    "unreadable": "JAX compiles its module anew each time, with a warning. Give the user whose "
    "programs use the cache permission to read it, or move it out of the way.",
    "unchecked": "No executable is known to be as large. Look at where it came from.",
    "duplicate": "Harmless but for the room: the same executable under several keys. A flag or a "
    "setting that is in the key but changes nothing is the usual reason.",
    "never-read": "Nothing to mend: what is never read costs room, and under a cap evicts others.",
    "future": "Set the clock right. Under a size cap such an entry counts as the newest used and "
    "stays until the clock has caught up.",
    "no-filelock": "Install it (`pip install filelock`): without it, JAX warns once and then runs "
    "without any cache as soon as jax_compilation_cache_max_size is set.",
    "slow-put": "Use fewer entries: a cap that fits fewer, a higher "
    "jax_persistent_cache_min_compile_time_secs, one directory per program; or no cap and a "
    "clean-up by age while nothing runs.",
}
REMEDY["torn"] = REMEDY["garbage"] = REMEDY["empty"]


class Finding(msgspec.Struct, frozen=True):
    """One thing that ails a cache.

    Attributes:
        kind: What it is.
        severity: `note` leaves the cache healthy, `ailing` costs time or entries, `unusable` means
            that nobody should run programs with it as it is.
        entries: The names of the entries concerned; none if it is about the directory.
        evidence: What was seen.
        remedy: What to do.
        settled: False for an entry so young that its writer may not have finished.
    """

    kind: Kind
    severity: Severity
    entries: tuple[str, ...]
    evidence: str
    remedy: str
    settled: bool = True


class Diagnosis(msgspec.Struct, frozen=True):
    """All findings on a directory, and the state that they add up to."""

    state: State
    findings: tuple[Finding, ...]
    put_cost: PutCost | None = None

    @property
    def exit_code(self) -> ExitCode:
        """What the command line ends with."""
        return EXIT_CODES[self.state]
