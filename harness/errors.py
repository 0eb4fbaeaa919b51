"""What can go wrong that is the user's to mend, each with the command line's exit code."""

from __future__ import annotations


class HarnessError(Exception):
    """Something a user can mend; the text says what, which value, what was expected, what to do."""

    exit_code = 4


class UsageError(HarnessError):
    """A wrong argument, option or file name."""

    exit_code = 2


class StoreError(HarnessError):
    """The results folder cannot be read or written."""

    exit_code = 4


class FleetError(HarnessError):
    """The scheduler or its workers cannot be used, or are gone; what arrived is kept."""

    exit_code = 5


class ProfileError(HarnessError):
    """A profile cannot be written or read."""


class LedgerError(HarnessError):
    """The ledger cannot be opened, written or read."""


class HarnessWarning(UserWarning):
    """Something a user should know about the numbers they got; the text says what it means."""
