"""Whether something can be built for a compile-only target: another process tries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from harness.targets.target import Target

TIMEOUT_S = 120.0

_CHILD = "harness.targets.small_build"


def problems(targets: Sequence[Target]) -> dict[str, str]:
    """Return why nothing can be built for each of some targets, by name; empty where it can."""
    if not targets:
        return {}
    variables = {name: value for one in targets for name, value in one.environment.items()}
    typed = [f"{one.family}:{one.file}" if one.file else one.name for one in targets]
    try:
        done = subprocess.run(
            [sys.executable, "-m", _CHILD, *typed],
            capture_output=True,
            text=True,
            env={**os.environ, **variables, "JAX_PLATFORMS": "cpu"},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return dict.fromkeys((one.name for one in targets), f"nothing built in {TIMEOUT_S:g} s")
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        return dict.fromkeys((one.name for one in targets), f"the compiler ended: {said[:300]}")
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found
