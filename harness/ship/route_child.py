"""A process that starts as a program would, by one of the ways to ship it.

Like :mod:`harness.engine.worker` it imports as little as it can before JAX.
"""

from __future__ import annotations

import time

_ENTERED_NS = time.monotonic_ns()

import pickle  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from harness.engine import channel  # noqa: E402

_KINDS = ("trace", "lower", "compile", "hit")


def start(job: dict[str, Any]) -> dict[str, Any]:
    """Start by the job's route; return what each step took, and what JAX reported."""
    steps_s = {"process": (_ENTERED_NS - channel.spawned_ns()) / 1e9}

    def timed(step: str, work: Callable[[], Any]) -> Any:
        begin_ns = time.monotonic_ns()
        result = work()
        steps_s[step] = (time.monotonic_ns() - begin_ns) / 1e9
        return result

    jax = timed("import", lambda: __import__("jax"))
    timed("backend", jax.devices)
    # What the harness needs for itself is left out of the clock, alike for every route.
    from harness.ship import programs
    from harness.watch import evidence

    folder, name = Path(job["folder"]), job["program"]
    program = programs.PROGRAMS[name]
    function = timed("program", lambda: program.load(job, folder / name))
    data = jax.block_until_ready(programs.inputs(job, folder / "data"))
    proof = evidence.Evidence()
    if not program.ahead:
        function, building_s = programs.build(function, data)
        steps_s |= building_s
    result = timed("run", lambda: jax.block_until_ready(function(*data)))
    counts = proof.take()
    leaves = [programs.plain(leaf) for leaf in jax.tree_util.tree_leaves(result)]
    (folder / "result").write_bytes(pickle.dumps(leaves))
    return {"steps_s": steps_s, "events": {kind: counts[kind] for kind in _KINDS if kind in counts}}


if __name__ == "__main__":
    channel.serve(start)
