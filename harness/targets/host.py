"""What this machine is, as far as it can be told without JAX."""

from __future__ import annotations

import functools
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil


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
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():  # Linux
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
