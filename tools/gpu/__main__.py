"""Run every check in a process of its own; one that fails, or hangs, stops no other.

    python -m tools.gpu [MACHINE]

Writes `results/checks/MACHINE/gpu.jsonl`, a line of JSON per check, as it goes, and prints one line
per check. (asv would take a `.json` there for its own.)
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import targets
from harness.baselines.cupy_eager import CupyEager

TIMEOUT_S = 90.0
BUDGET_S = 240.0
"""For all checks together; what is left over is named and not run."""


def environment(name, scratch):
    """Return the whole environment of a check's process."""
    from tools.gpu.checks import CHECKS
    from tools.gpu.libraries import Xla

    library, _, own = CHECKS[name]
    variables = {**os.environ, **CupyEager.environment("", str(scratch / "kernels"))}
    variables |= {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "0"}
    if library is Xla:
        variables["JAX_PLATFORMS"] = targets.find("gpu").platforms
    return variables | {key: value.format(scratch=scratch) for key, value in own.items()}


def perform(name, scratch, timeout_s=TIMEOUT_S):
    """Run one check, and return its `status` (`ok`, `n/a`, `failed`), `value` or `reason`."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "tools.gpu", "--check", name]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=environment(name, scratch),
            cwd=Path(__file__).parents[2],
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "failed", "reason": f"not done after {timeout_s:.0f} s"}
    try:
        report = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = " | ".join(done.stderr.strip().splitlines()[-3:])
        report = {"status": "failed", "reason": f"exit code {done.returncode}: {last}"}
    return {**report, "wall_s": round(time.perf_counter() - begin, 2)}


def main(machine, names):
    """Run the checks of these names; the results are filed under `machine`."""
    folder = Path(os.environ.get("HARNESS_RESULTS") or "results") / "checks" / machine
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gpu.jsonl"
    failed = False
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="harness-gpu-") as top, path.open("w") as lines:
        scratch = Path(top)
        for name in names:
            left = BUDGET_S - (time.perf_counter() - begin)
            report = {"status": "failed", "reason": f"no time left of {BUDGET_S:.0f} s"}
            if left > 1:
                report = perform(name, scratch, min(left, TIMEOUT_S))
            failed |= report["status"] == "failed"
            lines.write(json.dumps({"check": name, **report}) + "\n")
            lines.flush()
            print(f"{report['status']:>6}  {name}  {report.get('reason', '')}".rstrip())
        for dumped in sorted(scratch.glob("dump/*gpu_target_config.pbtxt"))[:1]:
            kept = folder / "gpu_target_config.pbtxt"
            kept.write_bytes(dumped.read_bytes())
            print(f"        what XLA takes the device for: {kept}")
    print(path)
    return 3 if failed else 0


def child(name):
    """Run one check in this process, and write what it found as one line of JSON."""
    stdout = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not be mistaken for the result
    from tools.gpu.checks import run

    os.write(stdout, (json.dumps(run(name)) + "\n").encode())
    os._exit(0)  # backends may hang in their own exit handlers


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        child(sys.argv[2])
    from tools.gpu.checks import CHECKS

    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else socket.gethostname(), CHECKS))
