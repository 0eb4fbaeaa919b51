"""Compile one module that stands in a file: StableHLO, HLO, or a folder that can be reproduced.

A process of its own compiles it, :mod:`harness.ir.module_child`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness import targets
from harness.errors import UsageError
from harness.ir.build import BuildError, BuiltTexts, Failed, TargetLacking, decoded
from harness.targets.target import Target

MODULE, SCRIPT, DESCRIPTION = "module.mlir", "compile.py", "target.pbtxt"
"""The files of a folder from which a compile can be reproduced."""

TIMEOUT_S = 3600.0

_SEVERAL = re.compile(
    r"\b(?:mhlo\.)?(?:num_partitions|num_replicas|replica_count) ?= ?([2-9]|\d\d+)\b"
)


def is_of_several(text: str) -> bool:
    """Tell whether the text of a module of StableHLO or HLO is of several devices."""
    return _SEVERAL.search(text.partition("func.func")[0]) is not None


_ENDS = (".mlir", ".mlirbc", ".hlo", ".txt", ".pb", ".gz")
"""What is meant to be a file, though there is none."""

_LISTED = 5


def file_of(name: str) -> Path | None:
    """Return the file of a module, where a name is that of one or of a folder with one.

    Raises:
        UsageError: there is no such file, the folder has several modules, or it is a program.
    """
    path = Path(name)
    if os.path.isfile(path):
        if path.suffix == ".py":
            raise UsageError(
                f"{name} is a program of Python. Name one of its functions: harness compile "
                f"FUNCTION -- python {shlex.quote(name)}"
            )
        return path
    is_meant = os.sep in name or path.suffix in _ENDS
    if not os.path.isdir(path):
        if is_meant:
            raise UsageError(f"There is no file {name}.")
        return None
    if (path / MODULE).is_file():
        return path / MODULE
    dumped = sorted(path.glob("*.before_optimizations.*"), key=lambda one: -one.stat().st_size)
    if len(dumped) > 1:
        listed = "\n  ".join(map(str, dumped[:_LISTED]))
        raise UsageError(
            f"{name} holds {len(dumped)} modules; name one of them. The largest:\n  {listed}"
        )
    if not dumped and is_meant:
        raise UsageError(
            f"{name} holds no module: neither {MODULE}, which --reproduce writes, nor "
            "*.before_optimizations.*, which XLA_FLAGS=--xla_dump_to does."
        )
    return dumped[0] if dumped else None


def target_of(file: Path) -> str:
    """Return what a module was written for: in a folder of --reproduce its target, else `cpu`."""
    script, description = (file.with_name(name) for name in (SCRIPT, DESCRIPTION))
    text = script.read_text(encoding="utf-8") if script.is_file() else ""
    named = re.search(r'^TARGET = "([\w:-]+)"$', text, re.M) if file.name == MODULE else None
    if named is None:
        return "cpu"
    is_known = named[1] in targets.TARGETS
    return named[1] if is_known or not description.is_file() else f"gpu:{description}"


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
    lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it printed nothing"]
    if done.returncode:  # XLA ends the process where it trips over itself
        why = next((line for line in lines if "Check failed" in line), lines[-1])
        raise BuildError(f"{file} was not compiled for {target.name}, XLA crashed: {why[:300]}")
    made = decoded(done.stdout.splitlines()[-1])
    if isinstance(made, Failed):
        raise BuildError(f"{made.reason}.")
    assert isinstance(made, BuiltTexts)
    return made


def check_folder(folder: Path) -> None:
    """Raise a UsageError where a folder to write is none, or holds something else."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: give --reproduce a folder.")
    there = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    if others := there - {MODULE, SCRIPT, DESCRIPTION}:
        raise UsageError(f"{folder} holds {min(others)}: give --reproduce an empty folder.")


def write(folder: Path, text: str, script: str, target: Target) -> None:
    """Write a folder from which a compile can be reproduced: the module, and its script.

    Raises:
        UsageError: it cannot be written, or the module is of several devices.
    """
    if is_of_several(text):
        raise UsageError(
            "It is a module of several devices: --reproduce writes those of one. Give --transform "
            "another, or call the function on one device."
        )
    files = {MODULE: text, SCRIPT: script}
    if target.family == "gpu" and target.description:
        files[DESCRIPTION] = target.description
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DESCRIPTION).unlink(missing_ok=True)  # of what was here before
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}. Give --reproduce another folder."
        ) from None


def environment(target: Target) -> Mapping[str, str]:
    """Return the variables of a process that compiles for a target."""
    return {"JAX_PLATFORMS": target.platforms, **target.environment}
