"""Compile one module that stands in a file: StableHLO, HLO, or a folder that can be reproduced.

A process of its own compiles it, :mod:`harness.ir.module_child`.
"""

from __future__ import annotations

import os
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
    command = [sys.executable, "-m", "harness.ir.module_child", str(file), target_name]
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
