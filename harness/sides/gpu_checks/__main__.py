"""Run every check in a process of its own; one that fails, or hangs, stops no other.

Writes `results/checks/MACHINE/gpu.jsonl`, a line of JSON per check, as it goes, and prints one line
per check. (asv would take a `.json` there for its own.)
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import targets
from harness.sides.cupy_library import cupy_environment

TIMEOUT_S = 90.0
BUDGET_S = 240.0
"""For all checks together; what is left over is named and not run."""


@dataclass(frozen=True)
class Check:
    """One check: its name in the report, the module and function that do it, and variables."""

    name: str
    side: str
    function: str
    environment: Mapping[str, str] = field(default_factory=dict)


def checks(scratch: Path) -> list[Check]:
    """Return the checks, most wanted first; `scratch` takes kernel caches and dumps."""
    dump = {"XLA_FLAGS": f"--xla_dump_to={scratch / 'dump'}"}
    shared = {"CUPY_CACHE_DIR": str(scratch / "compile-times")}
    in_memory = {"CUPY_CACHE_IN_MEMORY": "1"}
    no_buffers = {"XLA_FLAGS": "--xla_gpu_enable_command_buffer="}
    small_client = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    return [
        Check("device and ceilings, XLA", "jax", "device", dump),
        Check("device and ceilings, CuPy", "cupy", "device"),
        Check("launches, CuPy", "cupy", "launches"),
        Check("launches, XLA", "jax", "launches"),
        Check("launches, compile-only", "jax", "compile-only", {"JAX_PLATFORMS": "cpu"}),
        Check("fuse fallback", "cupy", "fuse-fallback"),
        Check("precision, XLA", "jax", "precision"),
        Check("precision, CuPy", "cupy", "precision"),
        Check("command buffers on", "jax", "command-buffers"),
        Check("command buffers off", "jax", "command-buffers", no_buffers),
        Check("compile times, cold", "cupy", "compile-times", shared),
        Check("compile times, warm", "cupy", "compile-times", shared),
        Check("compile times, in memory", "cupy", "compile-times", in_memory),
        Check(
            "compile times, in memory, precompiled headers",
            "cupy",
            "compile-times",
            {**in_memory, "CUPY_NVRTC_USE_PCH": "1"},
        ),
        Check("softmax cliff", "jax", "softmax-cliff"),
        Check("knee, XLA", "jax", "knee"),
        Check("knee, CuPy", "cupy", "knee"),
        Check("CuPy in jax.profiler", "jax", "profiler", small_client),
    ]


def environment(check: Check, scratch: Path) -> dict[str, str]:
    """Return the whole environment of a check's process."""
    if check.side == "cupy":
        own = {**cupy_environment(scratch / "kernels"), "JAX_PLATFORMS": "cpu"}
    else:
        own = {"JAX_PLATFORMS": targets.find("gpu").platforms, "JAX_ENABLE_COMPILATION_CACHE": "0"}
        own |= {"CUPY_CACHE_DIR": str(scratch / "kernels")}
    return {**os.environ, **own, **check.environment}


def perform(check: Check, scratch: Path, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Run one check, and return its `status` (`ok`, `n/a`, `failed`), `value` or `reason`."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "harness.sides.gpu_checks.child", check.side]
    try:
        done = subprocess.run(
            [*command, check.function],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=environment(check, scratch),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "failed", "reason": f"not done after {timeout_s:.0f} s"}
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = " | ".join(done.stderr.strip().splitlines()[-3:])
        found = {"status": "failed", "reason": f"exit code {done.returncode}: {last}"}
    return {**found, "wall_s": round(time.perf_counter() - begin, 2)}


def main(arguments: list[str]) -> int:
    """Run the checks; the one argument, if any, is what the machine is called in the results."""
    machine = arguments[0] if arguments else socket.gethostname()
    folder = Path(os.environ.get("HARNESS_RESULTS") or "results") / "checks" / machine
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gpu.jsonl"
    failed = False
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="harness-gpu-") as name, path.open("w") as report:
        scratch = Path(name)
        for check in checks(scratch):
            left = BUDGET_S - (time.perf_counter() - begin)
            found = (
                perform(check, scratch, min(left, TIMEOUT_S))
                if left > 1
                else {"status": "failed", "reason": f"no time left of {BUDGET_S:.0f} s"}
            )
            failed |= found["status"] == "failed"
            report.write(json.dumps({"check": check.name, **found}) + "\n")
            report.flush()
            print(f"{found['status']:>6}  {check.name}  {found.get('reason', '')}".rstrip())
        for dumped in sorted(scratch.glob("dump/*gpu_target_config.pbtxt"))[:1]:
            kept = folder / "gpu_target_config.pbtxt"
            kept.write_bytes(dumped.read_bytes())
            print(f"        what XLA takes the device for: {kept}")
    print(path)
    return 3 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
