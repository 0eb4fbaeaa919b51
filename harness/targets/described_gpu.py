"""GPUs that are compiled for and not run.

The compiler comes with JAX's plugin, which works without driver and device. What it must know of a
GPU stands in a text (XLA's GpuTargetConfigProto), which a file of the user's may hold.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Collection
from functools import partial
from pathlib import Path

from harness.errors import UsageError
from harness.targets.host import installed
from harness.targets.target import Target

SUFFIX = ".pbtxt"

PLATFORM = "CUDA"
"""What a description must be of: JAX's plugin for others (ROCm) compiles on its own devices."""

DEVICES_OF_A_GPU = 2
"""How many devices a described GPU stands for: what `sharded` has on a CPU as well."""

_DESCRIPTION_HELP = (
    "the text form of XLA's GpuTargetConfigProto, which XLA_FLAGS=--xla_dump_to=DIR writes as "
    "*.gpu_target_config.pbtxt on a machine that has the GPU"
)


def described(name: str, description: str, file: str = "") -> Target:
    """Return the target `gpu:NAME` of a GPU with that description."""
    called = re.search(r'^\s*device_description_str:\s*"([^"\n]+)"', description, re.M)
    device = called[1] if called else name
    return Target(
        f"gpu:{name}",
        platforms="cpu",
        lacking=_lacking,
        words=partial("{}, compiled for and not run".format, device),
        compile_only=device,
        file=file,
        description=description,
        devices=DEVICES_OF_A_GPU,
    )


def is_file(name: str) -> bool:
    """Tell whether the name of a target says where a description is."""
    family, colon, rest = name.partition(":")
    return bool(family and colon) and (rest.endswith(SUFFIX) or "/" in rest)


def from_file(name: str, taken: Collection[str]) -> Target:
    """Return the target `gpu:STEM` for `gpu:FILE.pbtxt`.

    Raises:
        UsageError: the file is no description of a GPU, or its name is none for a target; `taken`
            are names that it cannot have.
    """
    family, _, path = name.partition(":")
    file = Path(path).expanduser()
    if family != "gpu":
        raise UsageError(
            f"{name!r}: only a GPU is described by a file, as gpu:FILE{SUFFIX}; TPUs are known by "
            f"name: {', '.join(one for one in taken if one.startswith('tpu:'))}."
        )
    stem = file.stem
    plain = file.suffix == SUFFIX and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", stem)
    if not plain or stem.lower() in {part for one in taken for part in one.split(":")}:
        raise UsageError(
            f"{name!r}: the target is called after its file, so that must have a plain name of "
            f"letters, digits, '-' and '_' that no target has which is built in, and end in "
            f"{SUFFIX}; rename {file.name!r}, for example to my-gpu{SUFFIX}."
        )
    try:
        description = file.read_text(encoding="utf-8")
        # Of anything else XLA would crash.
        there = re.search(r"^[^#\n]*\bgpu_device_info\b", description, re.M)
        problem = "" if there else "it has no gpu_device_info in it"
        platform = re.search(r'^\s*platform_name:\s*"([^"\n]*)"', description, re.M)
        if there and (platform is None or platform[1] != PLATFORM):
            is_named = f"is {platform[1]!r}" if platform else "is missing"
            problem = f"its platform_name {is_named}, and only {PLATFORM} can be compiled for"
    except OSError as error:
        problem = error.strerror or str(error)
    except UnicodeDecodeError:
        problem = "it holds no text"
    if problem:
        raise UsageError(
            f"The target file {file} cannot be read: {problem}. Expected {_DESCRIPTION_HELP}."
        )
    return described(stem, description, str(file))


def _lacking() -> str | None:
    wanted = installed("jaxlib")
    problems = []
    for cuda in ("cuda13", "cuda12"):
        names = (f"jax-{cuda}-pjrt", f"jax-{cuda}-plugin")
        versions = {name: installed(name) for name in names}
        if set(versions.values()) == {wanted}:
            return None
        if any(versions.values()):
            remedy = " ".join(f"{name}=={wanted}" for name in names)
            tools = " and ".join(
                f"{name} is {version or 'not installed'}"
                for name, version in versions.items()
                if version != wanted
            )
            problems.append(f"{tools}, and jaxlib {wanted} needs its own: pip install {remedy}")
    return problems[0] if problems else "jax-cuda13-pjrt is not installed (extra 'targets')"


_TOOLKITS = ("/usr/local/cuda", "/opt/cuda", f"{sysconfig.get_path('purelib')}/nvidia/cu13")
"""Where XLA looks for CUDA's tools behind PATH, the wheel's place last (jaxlib 0.10 to 0.12)."""

_TOOL_TIMEOUT_S = 10.0


def ptxas() -> str:
    """Return the version of the ptxas with which XLA makes the code of a GPU; "" for none."""
    places = [os.environ.get("PATH", ""), *(f"{toolkit}/bin" for toolkit in _TOOLKITS)]
    tool = shutil.which("ptxas", path=os.pathsep.join(places))
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = [tool or "ptxas", "--version"]
        text = subprocess.check_output(command, text=True, timeout=_TOOL_TIMEOUT_S)
        if version := re.search(r"\bV(\d[\d.]*)", text):
            return version[1]
    return ""


KNOWN = tuple(
    described(file.stem, file.read_text(encoding="utf-8"))
    for file in sorted((Path(__file__).parent / "data").glob(f"*{SUFFIX}"))
)
"""GPUs with a public description; its source is named in the file."""

_WITHOUT = ("gpu:l4", "gpu:t4", "gpu:l40s", "gpu:v100")
"""GPUs that people ask for: XLA publishes no description, or the compiler builds for it no more."""


def check_known(name: str) -> None:
    """Raise a UsageError for a GPU that cannot be compiled for by name, with the way out."""
    if name.lower() in _WITHOUT:
        raise UsageError(
            f"{name!r} has no public description to compile for. Write one on a machine that has "
            f"the GPU, and give it as gpu:FILE{SUFFIX}: {_DESCRIPTION_HELP}."
        )
