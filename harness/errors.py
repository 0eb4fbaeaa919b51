"""What can go wrong that is the user's to mend, and what the command line ends with."""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Iterable, Sequence


class ExitCode(enum.IntEnum):
    """What a command ends with; `harness --help-all` lists them."""

    FINE = 0
    WORSE = 1
    """What was judged is not as it should be: slower, over budget, with problems, or different."""
    USAGE = 2
    SOME_FAILED = 3
    """The others are done, and kept."""
    NOTHING = 4
    """Nothing was measured or is there to show, or a place cannot be read or written."""
    UNUSABLE = 5
    """What a command works with cannot be used: a fleet, an environment, a cache directory."""
    INCOMPLETE = 6
    """Measured, but a later part of the work failed."""
    BROKEN = 7
    """What was healthy before fails now."""
    DEFECT = 70
    """An error in the harness. Python would end with 1, which stands for something slower."""
    INTERRUPTED = 130
    """What was finished is kept."""
    UNREAD = 141
    """Nobody reads on what it prints. Click would end with 1, which stands for something slower."""


class HarnessError(Exception):
    """Something a user can mend; the text says what, which value, what was expected, what to do."""

    exit_code = ExitCode.NOTHING


class UsageError(HarnessError):
    """A wrong argument, option or file name."""

    exit_code = ExitCode.USAGE


class NotMeasured(UsageError):
    """What was asked for has no results yet."""


class StoreError(HarnessError):
    """The results folder cannot be read or written."""

    exit_code = ExitCode.NOTHING


class FleetError(HarnessError):
    """The scheduler or its workers cannot be used, or are gone; what arrived is kept."""

    exit_code = ExitCode.UNUSABLE


class ProfileError(HarnessError):
    """A profile cannot be written or read."""


class LedgerError(HarnessError):
    """The ledger cannot be opened, written or read."""


class HarnessWarning(UserWarning):
    """Something a user should know about the numbers they got; the text says what it means."""


# Names that a user types


def find_name(name: str, choices: Iterable[str], what: str, also: str = "") -> str:
    """Return the one of `choices` that is meant; upper and lower case are alike.

    Args:
        name: as it was typed.
        choices: every name there is.
        what: the noun for one of them, such as `target`.
        also: what else would be accepted, for the error's text.

    Raises:
        UsageError: none is meant; the text has the nearest, and all there are.
    """
    names = list(dict.fromkeys(choices))
    if name in names:
        return name
    alike = [one for one in names if one.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    there = ", ".join(names) or "none at all"
    raise UsageError(
        f"No {what} is called {name!r}.{nearest(name, names)} There are: {there}{also}."
    )


def match_names(pattern: str, choices: Iterable[str], what: str) -> list[str]:
    """Return those of `choices` in which a regular expression is found; case does not matter.

    Raises:
        UsageError: it is no regular expression, or is found in none.
    """
    names = list(dict.fromkeys(choices))
    try:
        search = re.compile(pattern, re.IGNORECASE).search
    except re.error as error:
        raise UsageError(f"{pattern!r} is no regular expression: {error}.") from None
    matching = [name for name in names if search(name)]
    if not matching:
        there = ", ".join(names) or "none at all"
        raise UsageError(
            f"No {what} matches {pattern!r}.{nearest(pattern, names)} There are: {there}."
        )
    return matching


def nearest(name: str, choices: Sequence[str]) -> str:
    """Return ` Did you mean 'gpu'?`, or nothing where no known name is like it.

    The last part of a name with dots counts as well: `Gelo` means `nn.Gelu`.
    """
    whole = {
        text.casefold(): one for one in reversed(choices) for text in (one, one.rpartition(".")[2])
    }
    near = difflib.get_close_matches(name.casefold(), whole, 1)
    return f" Did you mean {whole[near[0]]!r}?" if near else ""
