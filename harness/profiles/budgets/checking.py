"""Hold a profile against a budget file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.profiles.budgets import texts
from harness.profiles.budgets.files import BudgetFile, Table, read
from harness.profiles.budgets.judging import Use, judge
from harness.profiles.counting import Counted, by_function
from harness.profiles.model import Profile


@dataclass(frozen=True)
class Checked:
    """What a profile used of each limit in a file."""

    file: BudgetFile
    profile: Profile
    uses: tuple[Use, ...]
    """The furthest over first, then those that come closest."""
    stale: tuple[str, ...]
    """Tables that mean no function that was built, in words."""

    @property
    def over(self) -> list[Use]:
        """What was exceeded."""
        return [use for use in self.uses if use.over]

    def messages(self) -> list[str]:
        """Return a text for each limit that was exceeded: functions, call sites, causes."""
        text = texts.each(self.over, self.profile.cause_of)
        return [f"{self.file.path}: {one}" for one in text]


def checked(profile: Profile, path: Path | str) -> Checked:
    """Hold a profile against a budget file.

    Raises:
        UsageError: if the file cannot be read or understood.
    """
    file = read(path)
    functions = by_function(profile.builds)
    uses = judge(file.total, functions, "[total]", profile.cause_of)
    used: set[str] = set()
    for counted in functions:
        table = file.table_of(counted.names())
        if table is not None:
            used.add(table.text)
        if counted.eager and table is None:
            continue
        where, limits = (table.shown, table.limits) if table else ("[default]", file.default)
        uses += judge(limits, [counted], where, profile.cause_of, one=True)
    return Checked(
        file,
        profile,
        tuple(sorted(uses, key=_tightness)),
        tuple(_stale(t, functions) for t in file.functions if t.text not in used),
    )


def _tightness(use: Use) -> tuple[bool, float]:
    share = use.used / use.allowed if use.allowed else float(use.used > 0) + 1.0
    return (not use.over, -share)


def _stale(table: Table, functions: Sequence[Counted]) -> str:
    labels = [counted.label for counted in functions if not counted.eager]
    near = difflib.get_close_matches(table.text, labels, 1)
    if not near:
        near = [one for one in labels if one.split(":")[-1] == table.text.split(":")[-1]][:1]
    mean = f" Did you mean {near[0]!r}?" if near else ""
    return f"{table.shown} means no function that was built.{mean}"
