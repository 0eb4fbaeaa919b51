"""What a record says of an exception that the user's code has raised."""

from __future__ import annotations

import os
import re
import traceback

REASON_LENGTH = 2_000
"""Characters of an exception's text that a record keeps."""


_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n((?:  .*\n)+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+)', re.MULTILINE)


_REMEDIES = (
    ("cuDNN not found", "It comes with `pip install nvidia-cudnn-cu13`."),
    (
        "Unknown backend: 'gpu' requested",
        "There is none where a GPU is only compiled for: leave out host callbacks "
        "(`pure_callback`, `io_callback`, `jax.debug.print`) and `jax.devices('gpu')`.",
    ),
)
"""What JAX says, also where a program is only built for a GPU, and what helps."""


def describe(error: BaseException) -> str:
    """Return an exception's type and text, and the last line of the user's that it came from.

    Where a callback has raised, JAX puts its traceback into the text: that is left out, for its
    line.
    """
    text = _TRACEBACK.sub("", f"{type(error).__name__}: {error}")
    text += next((f" {remedy}" for words, remedy in _REMEDIES if words in text), "")
    frames = traceback.extract_tb(error.__traceback__)
    if not str(error) and frames:
        text += f"a check of {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"
    if len(text) > REASON_LENGTH:
        text = text[:REASON_LENGTH] + " ..."
    return text + place(error)


def place(error: BaseException) -> str:
    """Return ` (at FILE:LINE)`: the last line of the user's that an exception came from, if any."""
    frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    for inner in _TRACEBACK.findall(str(error)):
        frames += _FRAME.findall(inner)
    others = (os.path.dirname(os.path.dirname(__file__)), os.path.dirname(os.__file__), "<frozen")
    theirs = [f for f in frames if not f[0].startswith(others) and "site-packages" not in f[0]]
    return f" (at {os.path.basename(theirs[-1][0])}:{theirs[-1][1]})" if theirs else ""


def failure(error: BaseException, who: str = "") -> str:
    """Return why a case failed: :func:`describe`, after `who` raised it and whether memory ran out.

    JAX raises errors of its own, whose text says so, where a device has no memory left.
    """
    reason = f"{who} raised {describe(error)}" if who else describe(error)
    memory = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in reason
    return f"out of memory: {reason}" if memory else reason
