"""The process of `harness cache ship` that makes what is shipped, as a build machine would."""

from __future__ import annotations

import functools
import json
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import jax
import msgspec

from harness.declare import location, transforms
from harness.declare.workload import enumerate_cases
from harness.ship.route_child import plain
from harness.stages.prepared import Prepared, prepare

NO_FLATBUFFERS = (
    "the package 'flatbuffers' is not installed, and jax.export needs it to serialise: "
    "pip install flatbuffers"
)


def main() -> None:
    """Store the inputs, the export and the executable; say which of them could not be made."""
    job = json.loads(Path(sys.argv[1]).read_bytes())
    workload = location.load(msgspec.convert(job["source"], location.Source))
    case = list(enumerate_cases(workload))[job["case"]]
    prepared = prepare(workload, case)
    data = prepared.data(None)
    leaves, structure = jax.tree_util.tree_flatten(data)
    positions = jax.tree_util.tree_unflatten(structure, range(len(leaves)))
    stored = pickle.dumps((positions, [plain(leaf) for leaf in leaves]))
    Path(job["data"]).write_bytes(stored)
    answer = {
        "export": _attempt(lambda: _export(prepared, job)),
        "executable": _attempt(lambda: _executable(prepared, data, job)),
    }
    Path(sys.argv[2]).write_text(json.dumps(answer))


def _attempt(work: Any) -> dict[str, Any]:
    begin = time.monotonic()
    try:
        size = work()
    except ImportError as error:
        return {"reason": NO_FLATBUFFERS if "flatbuffers" in str(error) else str(error)}
    except Exception as error:  # JAX names what it cannot serialise by exceptions of many kinds
        return {"reason": in_a_line(error)}
    return {"bytes": size, "build_s": time.monotonic() - begin}


def in_a_line(error: Exception) -> str:
    """Return an error's kind and the first line of what it says, if it says anything."""
    said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def jitted(prepared: Prepared) -> Any:
    """Return the jitted function with its static arguments bound, under its own name."""
    function = transforms.transformed(prepared.workload, prepared.case)
    fixed = functools.wraps(function)(functools.partial(function, **prepared.static))
    return jax.jit(fixed, donate_argnums=prepared.donated_positions)


def _export(prepared: Prepared, job: dict[str, Any]) -> int:
    from jax import export

    blob = export.export(jitted(prepared))(*prepared.abstract).serialize()
    return Path(job["export"]).write_bytes(blob)


def _executable(prepared: Prepared, data: Any, job: dict[str, Any]) -> int:
    from jax.experimental import serialize_executable

    compiled = jitted(prepared).lower(*data).compile()
    blob = pickle.dumps(serialize_executable.serialize(compiled))
    return Path(job["executable"]).write_bytes(blob)


if __name__ == "__main__":
    main()
