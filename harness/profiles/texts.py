"""Times, counts and places as people read them."""

from __future__ import annotations

import os

from harness.records.units import counted as counted
from harness.records.units import seconds_text
from harness.records.units import share_text as share_text
from harness.watch.events import Frame, Function

duration_text = seconds_text

_PACKAGES = f"{os.sep}site-packages{os.sep}"


def place_text(file: str, line: int, folder: str = "") -> str:
    """Return a line of a file, short: `train.py:88`, `equinox/_jit.py:12`; empty for none.

    Args:
        file: as Python knows it.
        line: 0 where it is not known.
        folder: the working directory of the program; a file in it is named from there.
    """
    if not file:
        return ""
    if _PACKAGES in file:
        shown = file.rpartition(_PACKAGES)[2]
    elif folder and file.startswith(folder.rstrip(os.sep) + os.sep):
        shown = file[len(folder.rstrip(os.sep)) + 1 :]
    else:
        shown = file.removeprefix("." + os.sep)
    return f"{shown}:{line}" if line else shown


def package_of(file: str) -> str:
    """Return the installed package that a file belongs to: `equinox`; empty for none."""
    if _PACKAGES not in file:
        return ""
    return file.rpartition(_PACKAGES)[2].split(os.sep)[0].removesuffix(".py")


def function_text(function: Function) -> str:
    """Return a function's name with the transformations of JAX's around it: `grad(loss)`."""
    return transformed(function.name, function.through)


def transformed(name: str, through: str) -> str:
    """Return a name with the transformations in what `Function.through` says."""
    for wrapper in reversed(through.split(", ")):
        if wrapper in _TRANSFORMATIONS:
            name = f"{_TRANSFORMATIONS[wrapper]}({name})"
    return name


_TRANSFORMATIONS = {
    "grad_f": "grad",
    "grad_f_aux": "grad",
    "value_and_grad_f": "value_and_grad",
    "value_and_grad_f_aux": "value_and_grad",
    "vmap_f": "vmap",
    "pmap": "pmap",
    "jacfun": "jacobian",
    "fun_remat": "checkpoint",
}
"""What JAX calls the functions that its transformations return."""


def frame_text(frame: Frame, folder: str = "") -> str:
    """Return a line of a stack as :func:`place_text` does."""
    return place_text(frame.file, frame.line, folder)


def shortened(text: str, width: int) -> str:
    """Return a text of one line that is at most so wide; what is left out is a `…`."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"
