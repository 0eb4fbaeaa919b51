"""One process of `harness cache ship`: it starts as a program would, by one of the paths.

Like :mod:`harness.engine.worker` it imports as little as it can before JAX.
"""

from __future__ import annotations

import time

_ENTERED_NS = time.monotonic_ns()

import json  # noqa: E402
import os  # noqa: E402
import pickle  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

_KINDS = ("trace", "lower", "compile", "hit")


class _Watch:
    """Steps one after the other, each in seconds by the parent's clock."""

    def __init__(self) -> None:
        self.steps_s: dict[str, float] = {}

    def timed(self, step: str, work: Callable[[], Any]) -> Any:
        begin = time.monotonic_ns()
        result = work()
        self.steps_s[step] = (time.monotonic_ns() - begin) / 1e9
        return result


def main() -> None:
    """Read the job, start by its path, and write what that took."""
    job = json.loads(Path(sys.argv[1]).read_bytes())
    watch = _Watch()
    watch.steps_s["process"] = (_ENTERED_NS - int(os.environ["HARNESS_SPAWNED_NS"])) / 1e9
    watch.timed("import", _import_jax)
    import jax

    watch.timed("backend", jax.devices)
    # What the harness needs for itself is left out of the clock, alike for every path.
    from harness.declare import location  # noqa: F401
    from harness.watch import evidence

    program, static = watch.timed("program", lambda: _PROGRAMS[job["program"]](job))
    data = jax.block_until_ready(_restore(job))
    proof = evidence.Evidence()
    if job["program"] == "executable":
        call = program
    else:
        traced = watch.timed("trace", lambda: program.trace(*data, **static))
        lowered = watch.timed("lower", traced.lower)
        call = watch.timed("compile", lowered.compile)
    result = watch.timed("run", lambda: jax.block_until_ready(call(*data)))
    counts = proof.take()
    with Path(job["result"]).open("wb") as file:
        pickle.dump([plain(leaf) for leaf in jax.tree_util.tree_leaves(result)], file)
    answer = {
        "steps_s": watch.steps_s,
        "events": {kind: counts[kind] for kind in _KINDS if kind in counts},
    }
    Path(sys.argv[2]).write_text(json.dumps(answer))


def _import_jax() -> None:
    import jax  # noqa: F401


def _case(job: dict[str, Any]) -> tuple[Any, Any]:
    import msgspec

    from harness.declare import location
    from harness.declare.workload import enumerate_cases

    workload = location.load(msgspec.convert(job["source"], location.Source))
    return workload, list(enumerate_cases(workload))[job["case"]]


_Program = tuple[Any, dict[str, Any]]
"""What is called, and its static arguments."""


def _from_source(job: dict[str, Any]) -> _Program:
    from harness.declare.workload import static_arguments
    from harness.stages.prepared import Prepared, wrap

    workload, case = _case(job)
    jitted = wrap(Prepared(workload, case, (), (), None, {}))
    return jitted, static_arguments(workload, case)


def _from_export(job: dict[str, Any]) -> _Program:
    import jax
    from jax import export

    blob = bytearray(Path(job["export"]).read_bytes())
    return jax.jit(export.deserialize(blob).call), {}


def _from_executable(job: dict[str, Any]) -> _Program:
    import jax
    from jax.experimental import serialize_executable

    payload, in_tree, out_tree = pickle.loads(Path(job["executable"]).read_bytes())
    program = serialize_executable.deserialize_and_load(
        payload, in_tree, out_tree, execution_devices=jax.devices()[:1]
    )
    return program, {}


_PROGRAMS: dict[str, Callable[[dict[str, Any]], _Program]] = {
    "jit": _from_source,
    "export": _from_export,
    "executable": _from_executable,
}


def plain(leaf: Any) -> Any:
    """Return a leaf as NumPy array, a PRNG key as its data and the name of its implementation."""
    import jax
    import numpy as np

    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf)), str(jax.random.key_impl(leaf))
    return np.asarray(leaf)


def _restore(job: dict[str, Any]) -> Any:
    """Return the arguments that the builder stored, on the device."""
    import jax

    stored = Path(job["data"]).read_bytes()
    try:
        tree, leaves = pickle.loads(stored)
    except (ImportError, AttributeError):  # a container of the user's own
        _case(job)
        tree, leaves = pickle.loads(stored)
    arrays = [
        jax.random.wrap_key_data(leaf[0], impl=leaf[1]) if isinstance(leaf, tuple) else leaf
        for leaf in leaves
    ]
    return jax.device_put(jax.tree_util.tree_map(lambda position: arrays[position], tree))


if __name__ == "__main__":
    main()
