"""Import modules with a workload each, and trace it; run as a script, by its path.

Reads their texts as JSON from standard input, by the names of the workloads, and answers with one
line of JSON on standard output.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any

import jax

from harness.declare.check import check
from harness.declare.workload import enumerate_cases
from harness.stages.build import Build
from harness.stages.prepared import prepare
from harness.watch import jax_names


def answer(texts: dict[str, str]) -> dict[str, Any]:
    """Return the `errors` of those that fail; of each the first case is traced, for the CPU.

    `backend` tells whether the imports alone woke one of JAX's backends.
    """
    errors: dict[str, str] = {}
    made: dict[str, Any] = {}
    for name, text in texts.items():
        module = sys.modules[f"adopted_{name}"] = types.ModuleType(f"adopted_{name}")
        try:
            exec(compile(text, name, "exec"), vars(module))
            made[name] = vars(module)[name]
        except BaseException as error:  # a user's module may even exit
            errors[name] = f"{type(error).__name__}: {error}".partition("\n")[0]
    backend = bool(jax_names.bridge().backends_are_initialized())
    for name, workload in made.items():
        jax.config.update("jax_enable_x64", workload.x64)
        try:
            check(workload)
            Build.of(prepare(workload, next(enumerate_cases(workload, ["cpu"])))).lower()
        except Exception as error:  # whatever the function, or JAX, raises
            errors[name] = f"{type(error).__name__}: {error}".partition("\n")[0]
    return {"errors": errors, "backend": backend}


if __name__ == "__main__":
    # What the imported modules print must not get into the answer.
    answering = os.dup(1)
    os.dup2(2, 1)
    line = json.dumps(answer(json.load(sys.stdin)))
    os.write(answering, line.encode())
    os._exit(0)  # threads of the user's must not hold it up
