"""Cache directories filled by real JAX, in processes of their own."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from harness.cache import doctor
from harness.cache.directory import open_directory
from harness.cache.survey import survey
from tests import forks

CAP = 10_000_000
DAMAGE = {
    "empty": lambda data: b"",
    "torn": lambda data: data[: len(data) // 2],
    "garbage": lambda data: b"garbage" * 99,
}

PROGRAM = """
import json, sys, warnings
import numpy as np
warned = []
warnings.showwarning = lambda message, *rest: warned.append(str(message))
warnings.simplefilter("always")
import jax, jax.monitoring
import jax.numpy as jnp

jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_compilation_cache_max_size", int(sys.argv[2]))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
seen = []
jax.monitoring.register_event_listener(lambda name, **rest: seen.append(name.split("/")[-1]))

def first(x): return jnp.tanh(x @ x).sum()
def second(x): return jnp.sort(x, axis=0) * 2
def third(x): return jnp.cumsum(x, axis=1) - 1

for function in (first, second, third)[: int(sys.argv[3])]:
    jax.block_until_ready(jax.jit(function)(np.ones((8, 8), np.float32)))
print(json.dumps({
    "hits": seen.count("cache_hits"), "written": seen.count("cache_misses"), "warned": warned
}))
"""


def run_jax(directory: Path, *more: str, cap: int = -1, functions: int = 3) -> dict:
    """Run three jitted functions with a cache there; hits, entries written and warnings."""
    done = forks.run(
        [sys.executable, "-c", PROGRAM, str(directory), str(cap), str(functions), *more],
        check=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    return json.loads(done.stdout.splitlines()[-1])


def run_harness(*arguments: str, env: dict[str, str] | None = None):
    """Run `harness cache …` in a process of its own."""
    outside = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION_CACHE")}
    command = [sys.executable, "-m", "harness", "cache", *arguments]
    return forks.run(command, env={**outside, **(env or {})})


def ended(done, code, said=""):
    """Hold a command to its exit code and to what it says; it shows no traceback."""
    output = done.stdout + done.stderr
    assert done.returncode == code, output
    assert said in output, output
    assert "Traceback" not in output, output


def entry_of(directory: Path, module: str) -> Path:
    """The only entry of one module."""
    (found,) = directory.glob(f"{module}-*-cache")
    return found


def backdate(directory: Path, seconds: float = 3600) -> None:
    """Make all files of a directory older, so that the doctor takes none for a young one."""
    for path in directory.iterdir():
        seen = path.stat()
        if path.name.endswith("-atime"):
            used = int.from_bytes(path.read_bytes(), "little") - int(seconds * 1e9)
            path.write_bytes(max(0, used).to_bytes(8, "little"))
        os.utime(path, (seen.st_atime - seconds, seen.st_mtime - seconds))


def diagnose(directory, **more):
    return doctor.diagnose(survey(open_directory(str(directory))), **more)


def kinds(diagnosis):
    return {finding.kind for finding in diagnosis.findings} - {"never-read"}


def the(diagnosis, kind):
    (found,) = (finding for finding in diagnosis.findings if finding.kind == kind)
    return found


def spoil(directory, kind, module="jit_first"):
    path = entry_of(directory, module)
    if kind == "orphaned":
        path.with_name(path.name.removesuffix("-cache") + "-atime").unlink()
    else:
        path.write_bytes(DAMAGE[kind](path.read_bytes()))
        os.utime(path, (time.time() - 3600,) * 2)
    return path.name.removesuffix("-cache")
