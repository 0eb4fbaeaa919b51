"""The kernels of a program that somebody wrote: in Pallas, for Triton or Mosaic."""

from __future__ import annotations

import base64
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from harness.program import hlo
from harness.program.compiler.inside import SourceLine, source_lines
from harness.program.compiler.places import Place
from harness.program.text import TARGET

LANGUAGES = {
    "tpu_custom_call": "Mosaic",
    "mosaic_gpu": "Mosaic GPU",
    "mosaic_gpu_v2": "Mosaic GPU",
    "__gpu$xla.gpu.triton": "Triton",
    "triton_kernel_call": "Triton",
}
"""What compiles a kernel, by the target of its custom call (jax 0.10 to 0.12)."""


_NAMED = re.compile(r'\bname = "([^"]+)"|\\00(?!stable_|anonymous_)([A-Za-z_]\w*?)_mosaic_gpu\b')
"""The name of a kernel for a GPU, in the options of its custom call."""

_BODY = re.compile(r'"body":"([^"]*)"')
"""MLIR's bytecode of a kernel for a TPU, in base64; its strings end with a zero."""


class WrittenKernel(msgspec.Struct):
    """A kernel that somebody wrote."""

    name: str
    """As its author called it, or the function that it is of; several, divided by ` or `, where
    one line calls kernels that nothing in the optimised HLO tells apart."""
    language: str
    instruction: str
    """In the optimised HLO."""
    function: str = ""
    file: str = ""
    line: int = 0
    """Which calls it, with function and file."""


def written(text: str, named: Sequence[tuple[str, Place | None]]) -> Iterator[WrittenKernel]:
    """Yield the kernels of optimised HLO.

    `named` are the kernels of its jaxpr, which has their names where the optimised HLO does not;
    see :func:`harness.program.compiler.structure.called_kernels`.
    """
    if not any(f'"{target}"' in text for target in LANGUAGES):
        return
    places = source_lines(text)
    unsure: dict[tuple[str, ...], list[tuple[WrittenKernel, list[str]]]] = defaultdict(list)
    for one in hlo.from_text(text).by_opcode.get("custom-call", ()):
        language = LANGUAGES.get(one.attribute(TARGET))
        if language is None:
            continue
        at = places.get(one.name, SourceLine())
        here = [name for name, place in named if place and place[1:] == (at.file, at.line)]
        calls = here or [name for name, _ in named]
        own = _NAMED.search(one.rest)
        inner = _BODY.search(one.rest)
        strings = base64.b64decode(inner[1]).split(b"\0") if inner else []
        scopes = at.op_name.split("/")
        able = [name for name in {*calls} if name in scopes or name.encode() in strings]
        able = [own[1] or own[2]] if own else able or [*dict.fromkeys(calls)] or [scopes[-1]]
        unsure[tuple(calls)].append((WrittenKernel("", language, one.name, *at[1:]), able))
    for of_line, kernels in unsure.items():
        _told_apart(kernels, Counter(of_line))
        for kernel, names in kernels:
            kernel.name = " or ".join(names)
            called = [place for of, place in named if place and of == kernel.name]
            if not kernel.file and called:
                kernel.function, kernel.file, kernel.line = called[0]
            yield kernel


def _told_apart(kernels: Sequence[tuple[WrittenKernel, list[str]]], calls: Counter[str]) -> None:
    """Take from what each kernel may be what others are, where each is of one of the calls.

    A kernel for a TPU may hold names of others that were traced before it (jax 0.10, 0.11).
    """
    if len(kernels) != calls.total():
        return
    waiting = [able for _, able in kernels]
    while sure := next((able for able in waiting if len(able) == 1), None):
        waiting = [able for able in waiting if able is not sure]
        calls[sure[0]] -= 1
        for able in waiting:
            able[:] = [name for name in able if calls[name] > 0] or able
