"""Cache directories filled by real JAX, in processes of their own."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from harness.cache import doctor
from harness.cache.directory import open_directory
from harness.cache.here import settings
from harness.cache.survey import survey
from tests import forks

CAP = 10_000_000
DAMAGE = {
    "empty": lambda data: b"",
    "torn": lambda data: data[: len(data) // 2],
    "garbage": lambda data: b"garbage" * 99,
}

START = """
import functools, json, os, sys, threading, warnings
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
x = np.ones((8, 8), np.float32)
def first(x): return jnp.tanh(x @ x).sum()
def second(x): return jnp.sort(x, axis=0) * 2
def third(x): return jnp.cumsum(x, axis=1) - 1
"""
WARNED = """
warned = []
warnings.showwarning = lambda message, *rest: warned.append(str(message))
warnings.simplefilter("always")
"""
COUNTED = """
seen = []
jax.monitoring.register_event_listener(lambda name, **rest: seen.append(name.split("/")[-1]))
for function in (first, second, third)[: int(sys.argv[1])]:
    jax.block_until_ready(jax.jit(function)(x))
print(json.dumps({
    "hits": seen.count("cache_hits"), "written": seen.count("cache_misses"), "warned": warned
}))
"""


FORGOTTEN = ("JAX_", "XLA_", "LIBTPU_", "TF_CPP_", "PYTHONHASHSEED", "PYTHONWARNINGS")
"""CacheSettings of the caller that would change what is seen."""


def environment(cache: Path | str, **settings: str) -> dict[str, str]:
    """The variables of a process that stores every compile in a cache."""
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith(FORGOTTEN)},
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        **settings,
    }


def run_jax(directory: Path, cap: int = -1, functions: int = 3) -> dict:
    """Run three jitted functions with a cache there; hits, entries written and warnings."""
    done = forks.run(
        [sys.executable, "-c", START + WARNED + COUNTED, str(functions)],
        check=True,
        env=environment(directory, JAX_COMPILATION_CACHE_MAX_SIZE=str(cap)),
    )
    return json.loads(done.stdout.splitlines()[-1])


def entry_of(directory: Path, module: str) -> Path:
    """The only entry of one module."""
    (path,) = directory.glob(f"{module}-*-cache")
    return path


def backdate(directory: Path, seconds: float = 3600) -> None:
    """Make all files of a directory older, so that the doctor takes none for a young one."""
    for path in directory.iterdir():
        seen = path.stat()
        if path.name.endswith("-atime"):
            used = int.from_bytes(path.read_bytes(), "little") - int(seconds * 1e9)
            path.write_bytes(max(0, used).to_bytes(8, "little"))
        os.utime(path, (seen.st_atime - seconds, seen.st_mtime - seconds))


def diagnose(directory, max_size_bytes=-1, **more):
    used = settings(max_size_bytes)
    return doctor.diagnose(survey(open_directory(str(directory))), used, **more)


def checks(diagnosis):
    return {finding.check for finding in diagnosis.findings} - {"never-read"}


def the(diagnosis, check):
    (finding,) = (finding for finding in diagnosis.findings if finding.check == check)
    return finding


def spoil(directory, kind, module="jit_first"):
    path = entry_of(directory, module)
    if kind == "orphaned":
        path.with_name(path.name.removesuffix("-cache") + "-atime").unlink()
    else:
        path.write_bytes(DAMAGE[kind](path.read_bytes()))
        os.utime(path, (time.time() - 3600,) * 2)
    return path.name.removesuffix("-cache")
