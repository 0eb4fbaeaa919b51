"""Times, counts and places as people read them."""

from __future__ import annotations

import os

from harness.watch.events import Frame, Function

_PACKAGES = f"{os.sep}site-packages{os.sep}"


def duration_text(seconds: float) -> str:
    """Return a time to two or three digits: `3 min 12 s`, `41 s`, `4.1 s`, `12 ms`, `0 s`."""
    if seconds < 0.0005:
        return "0 s" if seconds < 0.5e-6 else f"{seconds * 1e6:.0f} µs"
    if seconds < 0.9995:
        milliseconds = seconds * 1e3
        return f"{milliseconds:.0f} ms" if milliseconds >= 9.95 else f"{milliseconds:.1f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def share_text(part: float, whole: float) -> str:
    """Return a share in percent: `69 %`, `0.4 %`; empty where there is no whole."""
    if whole <= 0:
        return ""
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 0.95 or percent == 0 else f"{percent:.1g} %"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 build`, `2 builds`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
