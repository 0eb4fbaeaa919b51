"""The process of one check: prints what it found as one line of JSON, whatever happens in it."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main(side: str, function: str) -> dict[str, Any]:
    """Run a check of a side, and return its status with the value or the reason."""
    from harness.sides.side import Unavailable

    try:
        if side == "cupy":
            from harness.sides.gpu_checks import cupy_checks

            return {"status": "ok", "value": cupy_checks.run(function)}
        from harness.sides.gpu_checks import jax_checks

        return {"status": "ok", "value": jax_checks.run(function)}
    except Unavailable as error:
        return {"status": "n/a", "reason": str(error)}
    except Exception as error:  # libraries of a device raise anything; the report must say what
        text = " ".join(str(error).split())
        return {"status": "failed", "reason": f"{type(error).__name__}: {text[:600]}"}


if __name__ == "__main__":
    stdout = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not be mistaken for the result
    result = main(*sys.argv[1:3])
    os.write(stdout, (json.dumps(result) + "\n").encode())
    os._exit(0)  # backends may hang in their own exit handlers
