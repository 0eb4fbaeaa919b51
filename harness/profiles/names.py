"""What functions, files, lines and programs are called."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence

from harness.jaxhooks.events import Around, Function

CELL = "notebook cell"
"""The place of what was typed into a notebook, where file names change with every run."""

_CELL = re.compile(r"In\[\d+\]|.*[/\\]ipykernel_\d+[/\\][^/\\]*\.py|<(ipython-input-.*|stdin)>")
_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\](.*)", re.DOTALL)

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


FILTER_JIT = "equinox.filter_jit"
"""A wrapper that makes static what is no array."""


def wrappers(function: Function) -> tuple[str, ...]:
    """Return what is between a function and `jax.jit`, the outermost first."""
    return tuple(one.name for one in function.around)


def package_of(file: str) -> str:
    """Return the installed package that a file belongs to: `equinox`; empty for none."""
    inside = _PACKAGES.fullmatch(file)
    return re.split(r"[/\\]", inside[1])[0].removesuffix(".py") if inside else ""


def line_text(file: str, line: int, folder: str = "") -> str:
    """Return a line of a file, short: `train.py:88`, `equinox/_jit.py:12`; empty for none.

    Args:
        file: as Python knows it.
        line: 0 where it is not known.
        folder: the working directory of the program; a file in it is named from there.
    """
    if not file:
        return ""
    if inside := _PACKAGES.fullmatch(file):
        shown = inside[1]
    elif folder and file.startswith(folder.rstrip(os.sep) + os.sep):
        shown = file[len(folder.rstrip(os.sep)) + 1 :]
    else:
        shown = file.removeprefix("." + os.sep)
    return f"{shown}:{line}" if line else shown


def transformed(name: str, around: Sequence[Around]) -> str:
    """Return a name with what is around it: `grad(loss)`, `scan of step (fit.py:7)`."""
    if given := [one for one in around if one.file]:
        places = (f"{one.name} ({os.path.basename(one.file)}:{one.line})" for one in given)
        name += f" of {', '.join(places)}"
    for wrapper in reversed(around):
        if wrapper.name in _TRANSFORMATIONS:
            name = f"{_TRANSFORMATIONS[wrapper.name]}({name})"
    return name


def around_text(around: Iterable[Around]) -> str:
    """Return what is around a function as one text: `grad_f, partial`, `step at fit.py:7`."""
    texts = (f"{one.name} at {one.file}:{one.line}" if one.file else one.name for one in around)
    return ", ".join(texts)


class Names:
    """What functions are called: by their line as well, where a name alone does not tell."""

    def __init__(self, functions: Iterable[Function]) -> None:
        places: dict[str, set[tuple[str, int]]] = {}
        for function in functions:
            places.setdefault(function.name, set()).add((function.file, function.line))
        self._same = {name for name, several in places.items() if len(several) > 1}

    def of(self, function: Function) -> str:
        """Return a function as it stands in a text: `grad(loss)`, `<lambda>` (train.py:52)."""
        text = f"`{transformed(function.name, function.around)}`"
        if function.origin == "library" and (package := package_of(function.file)):
            text = f"{package}'s {text}"
        return text + self.place(function)

    def place(self, function: Function) -> str:
        """Return ` (train.py:52)` where a function's name alone does not tell, else nothing."""
        if not function.file or (function.name not in self._same and function.name.isidentifier()):
            return ""
        return f" ({os.path.basename(function.file)}:{function.line})"


def shortened(text: str, width: int) -> str:
    """Return a text of one line that is at most so wide; what is left out is a `…`."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


@functools.lru_cache(maxsize=4096)
def place_of(file: str, cwd: str, argv: tuple[str, ...]) -> str:
    """Return a file's name, relative to the folder of the program, of packages, or the current one.

    Args:
        file: as Python knows it.
        cwd: the folder that the process was started in.
        argv: its command line, with the interpreter or without.
    """
    if _CELL.fullmatch(file):
        return CELL
    if package := _PACKAGES.fullmatch(file):
        return package[1]
    folders = [cwd] if cwd else []
    script = _script_of(argv)
    if script and not _PACKAGES.fullmatch(script):
        folders.insert(0, os.path.dirname(os.path.join(cwd, script)))
    for folder in map(os.path.normpath, folders):
        if file.startswith(os.path.join(folder, "")):
            return os.path.relpath(file, folder)
    return file


def _script_of(argv: tuple[str, ...]) -> str:
    """Return the Python file that a command line runs; empty where it is none, or not named."""
    for word in argv:
        if word in ("-m", "-c", "-"):
            return ""
        if word.endswith(".py"):
            return word
    return ""


def program_of(argv: Sequence[str]) -> str:
    """Return the program of a command line, no arguments or folder: `train.py`, `-m package`."""
    words = list(argv)
    if words and os.path.basename(words[0]).startswith("python"):
        words = words[1:]
        while words and words[0].startswith("-") and words[0] not in ("-m", "-c", "-"):
            del words[: 2 if words[0] in ("-W", "-X") else 1]
    if words[:1] in (["-m"], ["-c"]):
        return " ".join(words[:2])
    return os.path.basename(words[0]) if words else ""
