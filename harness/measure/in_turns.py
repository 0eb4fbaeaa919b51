"""Measures one side of a comparison in turns: started once, it takes a process of each round.

It reads its job from standard input, a line of JSON, and then one line for each round; it answers
each with a line, and ends with its caller. Started as `python -m harness.measure.in_turns`.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import targets
from harness.errors import HarnessError
from harness.measure import channel
from harness.measure.context import Options, local_context
from harness.measure.sweep import sweep
from harness.stages import sampling
from harness.workload import discovery
from harness.workload.workload import name_of


def main() -> None:
    """Answer once there are workloads, and then measure round after round."""
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read, args=[lines], daemon=True).start()
    job = json.loads(lines.get())
    try:
        suite = _workloads(job)
        _answer({})
        while True:
            _round(json.loads(lines.get()), job, suite)
            _answer({})
    except HarnessError as error:
        _answer({"error": str(error)})
    channel.end()


def _read(lines: queue.Queue[bytes]) -> None:
    """Hand lines on; at their end the caller is gone, and so is whatever this process started."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os.killpg(0, signal.SIGKILL)


def _answer(answer: Mapping[str, Any]) -> None:
    channel.send(json.dumps(answer).encode())


def _workloads(job: Mapping[str, Any]) -> discovery.Found:
    suite = discovery.discover(Path(job["benchmarks"]))
    if not suite.workloads:
        reason = next(iter(suite.broken.values()), "no workload is defined there")
        raise HarnessError(f"No workload in {job['benchmarks']} can be used: {reason}")
    suite.workloads = discovery.select(suite.workloads, job["select"])
    suite.workloads = discovery.with_axes(suite.workloads, job["case"])
    return suite


def _round(asked: Mapping[str, Any], job: Mapping[str, Any], suite: discovery.Found) -> None:
    names = asked["only"]
    chosen = [one for one in suite.workloads if not names or name_of(one) in names]
    options = Options(
        sampling.effort(f"1x{job['passes']}"),
        targets=targets.names(job["target"]) or None,
        keep=discovery.case_filter(job["case"]),
        scenarios=tuple(job["scenario"]) or None,
        fresh=True,
        broken=suite.broken_names(),
        seed=asked["seed"],
    )
    folder = Path(job["benchmarks"])
    sweep(chosen, local_context(Path(asked["results"]), folder, job["machine"]), options)


if __name__ == "__main__":
    main()
