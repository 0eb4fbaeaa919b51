"""Compile one module that stands in a file: StableHLO, HLO, or a folder that can be reproduced.

    python -m harness.ir.module FILE TARGET

prints the :class:`harness.ir.build.BuiltTexts` of its compile.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness import targets
from harness.errors import UsageError
from harness.ir.build import BuildError, BuiltTexts, TargetLacking
from harness.targets.target import Target

MODULE, SCRIPT, DESCRIPTION = "module.mlir", "compile.py", "target.pbtxt"
"""The files of a folder from which a compile can be reproduced."""

TIMEOUT_S = 3600.0

_SEVERAL = re.compile(r"\b(?:mhlo\.)?num_(?:partitions|replicas) ?= ?([2-9]|\d\d+)\b")


def file_of(name: str) -> Path | None:
    """Return the file of a module, where a name is that of one or of a folder with one."""
    path = Path(name)
    inside = path / MODULE
    return path if path.is_file() else inside if inside.is_file() else None


def built(file: Path, target_name: str) -> BuiltTexts:
    """Return what the compile of a module tells.

    Raises:
        UsageError: there is no such target.
        TargetLacking: this machine does not have it.
        BuildError: the file is no module of one device, or the compiler does not take it.
    """
    target = targets.find(target_name)
    if lacking := target.lacking():
        raise TargetLacking(f"Target {target.name!r}: {lacking}. Name another with --target.")
    there = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "0", **environment(target)}
    command = [sys.executable, "-m", __name__, str(file), target_name]
    try:
        done = subprocess.run(
            command, capture_output=True, env=there, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{file} was not compiled after {TIMEOUT_S:g} s.") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise BuildError(
            f"{file} cannot be compiled for {target.name}: {(lines or ['?'])[-1][:300]}"
        )
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=BuiltTexts)


def check_folder(folder: Path) -> None:
    """Raise a UsageError where a folder to write holds something else."""
    there = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    if others := there - {MODULE, SCRIPT, DESCRIPTION}:
        raise UsageError(f"{folder} holds {min(others)}: give --reproduce an empty folder.")


def write(folder: Path, text: str, script: str, target: Target) -> None:
    """Write a folder from which a compile can be reproduced: the module, and its script.

    Raises:
        UsageError: it cannot be written.
    """
    files = {MODULE: text, SCRIPT: script}
    if target.family == "gpu" and target.description:
        files[DESCRIPTION] = target.description
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}. Give --reproduce another folder."
        ) from None


def environment(target: Target) -> Mapping[str, str]:
    """Return the variables of a process that compiles for a target."""
    return {"JAX_PLATFORMS": target.platforms, **target.environment}


def _compiled(file: Path, target: Target) -> BuiltTexts:
    import jax

    from harness.program.compiler.inside import inside
    from harness.program.compiler.recording import recorded
    from harness.program.kernels import written
    from harness.targets import topologies
    from harness.watch.jax_names import compile_module

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
