"""All processes that something has started, in whatever session, told by a variable of theirs."""

from __future__ import annotations

import contextlib

import psutil

TOKEN = "TESTS_TOKEN"
"""The variable; whoever has it hands it on to what it starts."""


def of(token: str, variable: str = TOKEN) -> list[psutil.Process]:
    """Return the processes that have a text in the variable and have not ended."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it ends, or is another user's
            if process.environ().get(variable) == token:
                found.append(process)
    return found
