"""The kernels of a program that somebody wrote: in Pallas, for Triton or Mosaic."""

from __future__ import annotations

import base64
import re
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
    for one in hlo.from_text(text).by_opcode.get("custom-call", ()):
        language = LANGUAGES.get(one.attribute(TARGET))
        if language is not None:
            at = places.get(one.name, SourceLine())
            here = [name for name, place in named if place and place[1:] == (at.file, at.line)]
            names = dict.fromkeys(here or [name for name, _ in named])
            own = _NAMED.search(one.rest)
            inner = _BODY.search(one.rest)
            strings = base64.b64decode(inner[1]).split(b"\0") if inner else []
            scopes = at.op_name.split("/")
            able = [name for name in names if name in scopes or name.encode() in strings]
            name = own[1] or own[2] if own else " or ".join(able or names) or scopes[-1]
            called = [place for of, place in named if place and of == name]
            place = Place(*at[1:]) if at.file or not called else called[0]
            yield WrittenKernel(name, language, one.name, *place)
