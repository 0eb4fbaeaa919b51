"""What this machine is, as far as it can be told without JAX, and the targets that it may have."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from harness.errors import UsageError
from harness.targets.target import Target


def installed(distribution: str) -> str:
    """Return the version of a distribution, "" where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def affinity() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def host() -> dict[str, Any]:
    """Return what the machine is: system, processor, cores, memory."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "arch": platform.machine(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "affinity": affinity(),
        "ram_bytes": psutil.virtual_memory().total,
    }


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():  # Linux
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@functools.cache
def cpu_features() -> frozenset[str]:
    """Return what the processor can, as Linux names it; nothing where the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, features = line.partition(":")
            if name.strip() in ("flags", "Features"):  # on x86, and on ARM
                return frozenset(features.split())
    return frozenset()


# Its CPU, its GPUs and its TPUs

VIRTUAL_CPU_DEVICES = 2
"""CPU devices made for `sharded` and `pmap`, unless JAX_NUM_CPU_DEVICES says otherwise."""

_NVIDIA, _ROCM = Path("/dev/nvidiactl"), Path("/dev/kfd")
_GPU_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin", "jax_rocm7_plugin", "jax_rocm60_plugin")


def virtual_cpu_devices() -> int:
    """Return how many CPU devices a process gets whose cases need several."""
    text = os.environ.get("JAX_NUM_CPU_DEVICES", "")
    if not text:
        return VIRTUAL_CPU_DEVICES
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"JAX_NUM_CPU_DEVICES is {text!r}; expected a whole number of at least 1.")
    return int(text)


def _no_gpu() -> bool:
    return not (_NVIDIA.exists() or _ROCM.exists())


def _no_tpu() -> bool:
    return not (Path("/dev/accel0").exists() or any(Path("/dev/vfio").glob("[0-9]*")))


def _lacking_gpu() -> str | None:
    if not any(importlib.util.find_spec(plugin) for plugin in _GPU_PLUGINS):
        return "no GPU plugin of JAX is installed (extra 'gpu')"
    if _no_gpu():
        return f"no GPU on this machine (neither {_NVIDIA} nor {_ROCM})"
    return None


def _lacking_tpu() -> str | None:
    if not importlib.util.find_spec("libtpu"):
        return "libtpu is not installed (extra 'tpu')"
    if _no_tpu():
        return "no TPU on this machine (neither /dev/accel0 nor /dev/vfio/0)"
    return None


CPU = Target(
    "cpu",
    platforms="cpu",
    lacking=lambda: None,
    words=lambda: f"{host()['cpu']}, {affinity()} cores for this process",
    devices=1,
)

GPU = Target(
    "gpu",
    platforms="rocm,cpu" if _ROCM.exists() and not _NVIDIA.exists() else "cuda,cpu",
    lacking=_lacking_gpu,
    absent=_no_gpu,
)

TPU = Target("tpu", platforms="tpu,cpu", lacking=_lacking_tpu, absent=_no_tpu)


# What there is of each, for a person who asks

TIMEOUT_S = 60.0
"""How long an accelerator may take to say what it is: the first contact with one takes seconds."""

_LOOK = """
import json, jax
print(json.dumps([[device.platform, device.device_kind] for device in jax.devices()]))
"""


@dataclass(frozen=True)
class Sighting:
    """A target as it is seen here."""

    name: str
    what: str
    """The device, in words; empty where none was seen."""
    devices: int = 0
    """How many JAX has; 0 where none was seen."""
    lacking: str = ""
    """Why it cannot be measured on here; empty where it can."""

    @property
    def here(self) -> bool:
        """Whether it can be measured on here."""
        return not self.lacking


def survey(targets: Iterable[Target]) -> list[Sighting]:
    """Look for each target. An accelerator that seems to be here is asked, by another process.

    Another one builds a small program for compile-only targets: for each that a file describes, and
    of those that are known by name for the first of a family, as one compiler builds for all.
    """
    seen, targets = [], list(targets)
    first: dict[str, Target] = {}
    for target in targets:
        if target.compile_only and not target.lacking():
            first.setdefault(target.file or target.family, target)
    problems = small_builds([*first.values()])
    for target in targets:
        lacking = target.lacking() or ""
        if target.compile_only and not lacking:
            lacking = problems[first[target.file or target.family].name]
        if target.words:
            seen.append(Sighting(target.name, target.words(), target.devices, lacking))
        else:
            seen.append(Sighting(target.name, "", 0, lacking) if lacking else _ask(target))
    return seen


def _ask(target: Target) -> Sighting:
    """Have another process wake the accelerator: here it would stay awake, and its memory taken."""
    variables = {
        "JAX_PLATFORMS": target.platforms,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_ENABLE_COMPILATION_CACHE": "0",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", _LOOK],
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Sighting(target.name, "", 0, f"it did not answer within {TIMEOUT_S:g} s")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["JAX ended without a word"])[-1]
        return Sighting(target.name, "", 0, f"JAX cannot use it: {reason[:300]}")
    seen = [tuple(pair) for pair in json.loads(done.stdout.splitlines()[-1])]
    kinds = Counter(kind for platform, kind in seen if platform == target.family)
    if not kinds:
        return Sighting(target.name, "", 0, "JAX's plugin did not start; the CPU is all it has")
    return Sighting(target.name, ", ".join(sorted(kinds)), kinds.total())


BUILD_TIMEOUT_S = 120.0

_CHILD = "harness.targets.small_build"


def small_builds(targets: Sequence[Target]) -> dict[str, str]:
    """Return why nothing can be built for each of some targets, by name; empty where it can."""
    if not targets:
        return {}
    variables = {name: value for one in targets for name, value in one.environment.items()}
    typed = [f"{one.family}:{one.file}" if one.file else one.name for one in targets]
    try:
        done = subprocess.run(
            [sys.executable, "-m", _CHILD, *typed],
            capture_output=True,
            text=True,
            env={**os.environ, **variables, "JAX_PLATFORMS": "cpu"},
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return dict.fromkeys(
            (one.name for one in targets), f"nothing built in {BUILD_TIMEOUT_S:g} s"
        )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        return dict.fromkeys((one.name for one in targets), f"the compiler ended: {reason[:300]}")
    reasons: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return reasons
