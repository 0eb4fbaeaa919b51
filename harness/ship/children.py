"""Start the processes in which cache experiments happen, and hear what they found.

A child is a module of this package that is run as `python -m MODULE JOB ANSWER`: two JSON files.
It must never be the caller's own process, because what JAX remembers would be the result.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import targets
from harness.declare.workload import Case, Workload
from harness.errors import ExitCode, HarnessError
from harness.stages.scenarios.cache_state import forgotten
from harness.stages.scenarios.registry import SCENARIOS

SPAWNED = "HARNESS_SPAWNED_NS"
"""`time.monotonic_ns()` of the parent just before it starts the child. On Linux and macOS that
clock counts from the machine's start, so that parent and child read the same one."""

STDERR_LINES = 5


class ChildError(HarnessError):
    """A process of an experiment ended without an answer."""

    exit_code = ExitCode.SOME_FAILED


def environment(
    workload: type[Workload], case: Case, cache: Path | None, **flags: str
) -> dict[str, str]:
    """Return the environment of a child: the caller's, with this cache and no other.

    Args:
        workload: whose `x64` is obeyed.
        case: whose target is.
        cache: the directory of the persistent cache; None switches it off.
        **flags: further variables.
    """
    variables = forgotten(os.environ)
    # A number of devices asked for elsewhere would change what is compiled here.
    variables.pop("JAX_NUM_CPU_DEVICES", None)
    variables["JAX_PLATFORMS"] = targets.find(case.target).platforms
    if workload.x64:
        variables["JAX_ENABLE_X64"] = "1"
    # As in a cold and a warm scenario everything is stored, whatever it cost.
    variables |= SCENARIOS["off" if cache is None else "warm"].environment(str(cache or ""))
    return {**variables, **flags}


@dataclass
class Child:
    """A process that was started, and where its answer will be."""

    module: str
    process: subprocess.Popen[bytes]
    answer: Path
    stderr: Path
    spawned_ns: int

    def wait(self, timeout_s: float) -> dict[str, Any]:
        """Return the answer.

        Raises:
            ChildError: it did not end well, or not within `timeout_s`; with its last words.
        """
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.end()
            raise ChildError(
                f"{self.module} had not finished after {timeout_s:g} s and was stopped. "
                "`timeout_s` of the workload is how long it may take."
            ) from None
        if self.process.returncode == 0 and self.answer.exists():
            answer: dict[str, Any] = json.loads(self.answer.read_bytes())
            return answer
        lines = self.stderr.read_text(errors="replace").strip().splitlines()
        said = " | ".join(lines[-STDERR_LINES:]) or "it said nothing"
        raise ChildError(
            f"{self.module} ended with exit code {self.process.returncode} and no answer: {said}"
        )

    def end(self) -> None:
        """Stop the process and all that it started, if it still runs."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start(module: str, job: Mapping[str, Any], folder: Path, variables: Mapping[str, str]) -> Child:
    """Start `module` with `job`; its files go into a new folder of `folder`."""
    place = folder / f"child-{time.monotonic_ns()}"
    place.mkdir()
    asked, answer, stderr = (place / name for name in ("job.json", "answer.json", "stderr.txt"))
    asked.write_text(json.dumps(job))
    with stderr.open("wb") as sink:
        spawned_ns = time.monotonic_ns()
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(asked), str(answer)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env={**variables, SPAWNED: str(spawned_ns)},
            start_new_session=True,
        )
    return Child(module, process, answer, stderr, spawned_ns)


def ask(
    module: str,
    job: Mapping[str, Any],
    folder: Path,
    variables: Mapping[str, str],
    timeout_s: float,
) -> dict[str, Any]:
    """Run `module` on `job` and return its answer."""
    return ask_together([(module, job, variables)], folder, timeout_s)[0]


def ask_together(
    jobs: Sequence[tuple[str, Mapping[str, Any], Mapping[str, str]]],
    folder: Path,
    timeout_s: float,
    meanwhile: Callable[[Sequence[Child]], None] = lambda running: None,
) -> list[dict[str, Any]]:
    """Run several children at once and return their answers; when one fails, all are ended.

    `meanwhile` is called once, when all are started.
    """
    running: list[Child] = []
    try:
        for module, job, variables in jobs:
            running.append(start(module, job, folder, variables))
        meanwhile(running)
        return [child.wait(timeout_s) for child in running]
    finally:
        for child in running:
            child.end()
