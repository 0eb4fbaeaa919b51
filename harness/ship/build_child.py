"""The process that makes what is shipped, as a build machine would."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import jax

from harness.declare.inputs import is_array
from harness.engine import channel
from harness.ship import cases
from harness.ship.programs import (
    NO_FLATBUFFERS,
    PROGRAMS,
    ProgramForm,
    call_of,
    first_line,
    jitted,
    plain,
)
from harness.stages.prepared import prepare


def build(job: dict[str, Any]) -> dict[str, Any]:
    """Store the inputs and every program; return how it is called, and bytes by program.

    In place of the bytes stands why one could not be made.
    """
    workload, (case,) = cases.read(job)
    prepared = prepare(workload, case)
    data = prepared.data(None)
    leaves, structure = jax.tree_util.tree_flatten(data)
    for leaf in leaves:
        if not is_array(leaf) and not isinstance(leaf, int | float | complex):
            return {"reason": f"one of them is a {type(leaf).__name__}"}
    positions = jax.tree_util.tree_unflatten(structure, range(len(leaves)))
    folder = Path(job["folder"])
    (folder / "data").write_bytes(pickle.dumps((positions, [plain(leaf) for leaf in leaves])))
    call = call_of(prepared)
    function = jitted(workload, case, call)
    made = {
        name: _made(folder / name, program, function, prepared.abstract, data)
        for name, program in PROGRAMS.items()
    }
    return {"call": call, "made": made}


def _made(path: Path, program: ProgramForm, *given: Any) -> dict[str, Any]:
    try:
        return {"bytes": path.write_bytes(program.make(*given))}
    except ImportError as error:
        return {"reason": NO_FLATBUFFERS if "flatbuffers" in str(error) else str(error)}
    except Exception as error:  # JAX names what it cannot serialise by exceptions of many kinds
        return {"reason": first_line(error)}


if __name__ == "__main__":
    channel.serve(build)
