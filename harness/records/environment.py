"""What a number was taken in: versions, host, flags that reach XLA."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.targets.described_gpu import ptxas
from harness.targets.host import host, installed

NIGHT = "HARNESS_NIGHT"
"""The variable that names the night of a series."""

_FLAG_PREFIXES = ("JAX_", "XLA_", "NCCL_")
_FLAGS = (
    "LIBTPU_INIT_ARGS",
    "CUDA_VISIBLE_DEVICES",
    "TPU_VISIBLE_DEVICES",
    "NPROC",
    "OMP_NUM_THREADS",
    "PYTHONHASHSEED",
)
_SET_HERE = (
    "JAX_PLATFORMS",
    "JAX_NUM_CPU_DEVICES",
    "JAX_ENABLE_X64",
    "JAX_ENABLE_COMPILATION_CACHE",
    "JAX_PERSISTENT_CACHE",
    "JAX_COMPILATION_CACHE",
)
"""How flags begin that the target, the workload and the scenario decide on."""

_PLUGIN_PREFIXES = ("jax-cuda", "jax-rocm", "libtpu", "nvidia-cudnn")


def night(text: str) -> str:
    """Return the name of a night: letters, digits, dots and hyphens; or "" for none."""
    if text and not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.-]{0,39}", text):
        raise UsageError(
            f"{text!r} is no name for a night: expected letters, digits, dots and hyphens, such "
            "as 2026-11-20."
        )
    return text


def versions() -> dict[str, str]:
    """Return the versions of Python, jax and jaxlib without importing them."""
    return {
        "python": platform.python_version(),
        "jax": installed("jax"),
        "jaxlib": installed("jaxlib"),
    }


def plugins() -> dict[str, str]:
    """Return the installed JAX plugins and their versions, with CUDA's that of ptxas."""
    versions_by_name = {}
    for distribution in metadata.distributions():
        # Reading all about all distributions, as `.metadata` does, takes a tenth of a second.
        named = re.search(r"^Name: *(\S+)", distribution.read_text("METADATA") or "", re.MULTILINE)
        name = named[1].lower() if named else ""
        if name.startswith(_PLUGIN_PREFIXES):
            versions_by_name[name] = distribution.version
    cuda = any(name.startswith("jax-cuda") for name in versions_by_name)
    if cuda and hasattr(os, "fork") and (version := ptxas()):  # Windows has no plugin for CUDA
        versions_by_name["ptxas"] = version
    return dict(sorted(versions_by_name.items()))


def env_name() -> str:
    """Return the name of the environment that this process runs in, which holds no path.

    asv's own name where asv made the environment, else one made of the versions.
    """
    given = os.environ.get("ASV_ENV_NAME")
    if given:
        return given
    return existing_env_name(".".join(map(str, sys.version_info[:2])), installed("jax"))


def existing_env_name(python: str, jax: str) -> str:
    """Return the name for an environment that asv did not make."""
    return f"existing-py{python}" + (f"-jax{jax}" if jax else "")


def recorded_env_name(asv_name: str, variables: Mapping[str, str]) -> str:
    """Return what records call an environment, by asv's name for it.

    asv's name has the night, and of an environment that asv did not make also the flags; records
    hold those beside it.

    `env_vars` are those that asv keeps apart by.
    """
    existing = re.match(r"existing-py[\d.]+(-jax[^-]+)?(?=-|$)", asv_name)
    return existing[0] if existing else asv_name.replace(f"-{NIGHT}{variables.get(NIGHT)}", "")


def flags() -> dict[str, str]:
    """Return the environment variables that change what JAX and XLA do.

    The directory of the persistent cache is not among them: it is the harness that chooses one, in
    a scratch folder whose path says nothing.
    """
    return {name: value for name, value in sorted(os.environ.items()) if is_flag(name)}


def told_apart(variables: Mapping[str, str], measured: bool = False) -> dict[str, str]:
    """Return the columns `xla_flags` and `env_vars` of what was measured under some variables.

    Args:
        variables: by name, those that tell two environments apart.
        measured: they are the flags of a process that measured, some of which the harness set.
    """
    others = [
        f"{name}={value}"
        for name, value in sorted(variables.items())
        if name not in ("XLA_FLAGS", NIGHT) and not (measured and name.startswith(_SET_HERE))
    ]
    return {"xla_flags": variables.get("XLA_FLAGS", ""), "env_vars": ", ".join(others)}


def is_flag(name: str) -> bool:
    """Tell whether an environment variable is one of those that :func:`flags` returns."""
    counts = name.startswith(_FLAG_PREFIXES) or name in _FLAGS
    return counts and name != "JAX_COMPILATION_CACHE_DIR"


@functools.cache
def surroundings() -> dict[str, Any]:
    """Return what is the same for every process of this interpreter on this machine."""
    return {**versions(), "plugins": plugins(), "host": host()}


def identity() -> str:
    """Return a digest of everything here that makes a number another number.

    Known before any process is started, and without importing JAX; what has been measured under
    one identity need not be measured again.
    """
    parts = {**surroundings(), "flags": flags()}
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def machine_name() -> str:
    """Return the name of this machine in results trees, as asv chooses it.

    HARNESS_MACHINE where it is set; else the one machine that ~/.asv-machine.json knows; else the
    host name.
    """
    given = os.environ.get("HARNESS_MACHINE")
    if given:
        return given
    try:
        machines = json.loads(Path("~/.asv-machine.json").expanduser().read_text())
    except (OSError, ValueError, RuntimeError):
        machines = {}
    names = [name for name in machines if name != "version"] if isinstance(machines, dict) else []
    node = platform.node() or "localhost"
    return names[0] if len(names) == 1 and node not in names else node
