"""The process of `harness cache recompiles`: one jitted function, called with every case, twice."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import msgspec

from harness.cache.experiments import steps
from harness.declare import location
from harness.declare.workload import enumerate_cases
from harness.program.text import fingerprint
from harness.stages import preparing
from harness.watch import evidence


def main() -> None:
    """Call with all cases one after the other, then again, and write what each call caused."""
    job = json.loads(Path(sys.argv[1]).read_bytes())
    workload = location.load(msgspec.convert(job["source"], location.Source))
    known = list(enumerate_cases(workload))
    prepared = [preparing.prepare(workload, known[position]) for position in job["cases"]]
    # What a process pays for its first program is no case's own cost.
    jax.jit(lambda x: x + 1)(jax.numpy.zeros(8)).block_until_ready()
    data = [p.data(None) for p in prepared]
    functions: dict[str, Any] = {}
    for p in prepared:
        functions.setdefault(p.case.transform, preparing.wrap(p))
    proof = evidence.Evidence()
    first = [
        _first(functions[p.case.transform], p, arguments, proof)
        for p, arguments in zip(prepared, data, strict=True)
    ]
    second = [
        _second(functions[p.case.transform], p, arguments, proof)
        for p, arguments in zip(prepared, data, strict=True)
    ]
    rows = [{**one, **other} for one, other in zip(first, second, strict=True)]
    Path(sys.argv[2]).write_text(json.dumps(rows))


def _copies(prepared: preparing.Prepared, arguments: Any) -> Any:
    """Return arguments that may be donated, with what JAX knows of them unchanged."""
    if not prepared.workload.donate:
        return arguments
    return jax.block_until_ready(jax.tree_util.tree_map(lambda leaf: leaf.copy(), arguments))


def _first(
    function: Any, prepared: preparing.Prepared, arguments: Any, proof: evidence.Evidence
) -> dict[str, Any]:
    """Trace, lower and compile, each on the clock, then call: the events say what was new."""
    given = _copies(prepared, arguments)
    proof.take()
    compiled, steps_s = steps.build(function, given, prepared.static)
    built = _counted(proof)
    jax.block_until_ready(function(*given, **prepared.static))
    called = _counted(proof)
    return {
        "signature": _signature(prepared, arguments),
        "steps_s": steps_s,
        "events": built,
        "call_events": called,
        "fingerprint": fingerprint(compiled),
    }


def _second(
    function: Any, prepared: preparing.Prepared, arguments: Any, proof: evidence.Evidence
) -> dict[str, Any]:
    """Call as a program would: nothing may be built any more."""
    given = _copies(prepared, arguments)
    proof.take()
    begin = time.perf_counter()
    jax.block_until_ready(function(*given, **prepared.static))
    return {"again_s": time.perf_counter() - begin, "again_events": _counted(proof)}


def _counted(proof: evidence.Evidence) -> dict[str, int]:
    counts = proof.take()
    return {kind: counts[kind] for kind in steps.STEPS if counts.get(kind)}


def _signature(prepared: preparing.Prepared, arguments: Any) -> dict[str, Any]:
    """Return what JAX looks an executable up by, in texts: a difference in any makes a new one."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(arguments)
    return {
        "transform": prepared.case.transform,
        "static": {name: repr(value) for name, value in prepared.static.items()},
        "pytree": str(structure),
        "inputs": {jax.tree_util.keystr(path): _input(leaf) for path, leaf in leaves},
    }


def _input(leaf: Any) -> dict[str, str]:
    committed = getattr(leaf, "committed", False)
    return {
        "shape": str(tuple(leaf.shape)),
        "dtype": str(leaf.dtype),
        "weak type": str(bool(getattr(leaf, "weak_type", False))),
        "device": str(leaf.sharding) if committed else "any",
    }


if __name__ == "__main__":
    main()
