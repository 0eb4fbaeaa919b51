"""What the program's own jitted functions return, in the order of their calls, for a comparison.

Calls go through JAX's slow path for that, so this is for a run that nobody times.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from harness.jaxhooks import jax_names
from harness.jaxhooks.call_sites import code_of

VARIABLE = "HARNESS_OBSERVE"
"""The environment variable that holds a JSON of `into`, a folder, and `root`, the program's."""

MOST_CALLS = 2_000
MOST_BYTES = 64 * 2**20
"""What is written of one process at most."""


def asked(into: str, root: str) -> str:
    """Return what the variable is to hold."""
    return json.dumps({"into": into, "root": root})


def begin(text: str) -> None:
    """Write each result of a function below `root` to a file of this process in `into`."""
    given = json.loads(text)
    numpy: Any = sys.modules["numpy"]  # JAX has imported it
    jax: Any = sys.modules["jax"]
    pjit, core = jax_names.module("pjit"), jax_names.module("core")
    run = pjit._run_python_pjit
    file = open(os.path.join(given["into"], f"{os.getpid()}.npy"), "wb")  # noqa: SIM115
    left = {"calls": MOST_CALLS, "bytes": MOST_BYTES}

    def observed(p: Any, args_flat: Any, fun: Any, *more: Any, **options: Any) -> Any:
        returned = run(p, args_flat, fun, *more, **options)
        code = code_of(fun)
        if code and code.co_filename.startswith(given["root"]) and core.trace_state_clean():
            write(returned[1])
        return returned

    def write(leaves: Any) -> None:
        arrays = [as_numpy(leaf) for leaf in leaves]
        left["calls"] -= 1
        left["bytes"] -= sum(array.nbytes for array in arrays)
        if min(left.values()) >= 0:
            for array in arrays:
                numpy.save(file, array, allow_pickle=False)
            file.flush()

    def as_numpy(leaf: Any) -> Any:
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        array = numpy.asarray(leaf)
        # A dtype that NumPy does not know by itself, as bfloat16, is every value of another.
        return array if array.dtype.kind in "biufc" else array.astype(numpy.float64)

    pjit._run_python_pjit = observed
    pjit._get_fastpath_data = lambda *arguments, **options: None
