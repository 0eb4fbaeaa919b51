"""The process that compiles the module of a file, started by :mod:`harness.ir.module`.

    python -m harness.ir.module_child FILE TARGET

prints the :class:`harness.ir.build.BuiltTexts` of its compile.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import jax
import msgspec

from harness import targets
from harness.ir.build import BuiltTexts
from harness.jaxhooks.jax_names import compile_module
from harness.program.compiler.inside import inside
from harness.program.compiler.recording import recorded
from harness.program.kernels import written
from harness.targets import topologies
from harness.targets.target import Target

_SEVERAL = re.compile(r"\b(?:mhlo\.)?num_(?:partitions|replicas) ?= ?([2-9]|\d\d+)\b")


def _compiled(file: Path, target: Target) -> BuiltTexts:
    text = file.read_text(encoding="utf-8")
    if _SEVERAL.search(text[:10_000]):
        raise ValueError("it is a module of several devices; expected one of a single device")
    device = jax.devices()[0]
    if target.description:
        device = topologies.describe(target.name, target.description).device
    compile_module("module @first { func.func @main() { return } }", device)()
    step = compile_module(text, device)
    made = []
    events = recorded(lambda: made.append(step()))
    whole = "".join(one.to_string() for one in made[0].hlo_modules())
    return BuiltTexts(
        "", inside=inside(events, whole), events=events, written=[*written(whole, ())]
    )


if __name__ == "__main__":
    print(msgspec.json.encode(_compiled(Path(sys.argv[1]), targets.find(sys.argv[2]))).decode())
