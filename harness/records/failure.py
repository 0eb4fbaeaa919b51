"""What a record says of an exception that the user's code has raised."""

from __future__ import annotations

import os
import traceback

REASON_LENGTH = 2_000
"""Characters of an exception's text that a record keeps."""


def describe(error: BaseException) -> str:
    """Return an exception's type and text, and the last line of the user's that it came from."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    ours = os.path.dirname(os.path.dirname(__file__))
    theirs = [
        f for f in frames if not f.filename.startswith(ours) and "site-packages" not in f.filename
    ]
    place = f" (at {os.path.basename(theirs[-1].filename)}:{theirs[-1].lineno})" if theirs else ""
    if len(text) > REASON_LENGTH:
        text = text[:REASON_LENGTH] + " ..."
    return text + place


def failure(error: BaseException, who: str = "") -> str:
    """Return why a case failed: :func:`describe`, after `who` raised it and whether memory ran out.

    JAX raises errors of its own, whose text says so, where a device has no memory left.
    """
    reason = f"{who} raised {describe(error)}" if who else describe(error)
    memory = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in reason
    return f"out of memory: {reason}" if memory else reason
