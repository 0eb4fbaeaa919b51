"""What there is of each target on this machine, for a person who asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from harness.targets.target import Target

TIMEOUT_S = 60.0
"""How long an accelerator may take to say what it is: the first contact with one takes seconds."""

_LOOK = """
import json, jax
print(json.dumps([[device.platform, device.device_kind] for device in jax.devices()]))
"""


@dataclass(frozen=True)
class Sighting:
    """A target as it is seen here."""

    name: str
    what: str
    """The device, in words; empty where none was seen."""
    devices: int = 0
    """How many JAX has; 0 where none was seen."""
    lacking: str = ""
    """Why it cannot be measured on here; empty where it can."""

    @property
    def here(self) -> bool:
        """Whether it can be measured on here."""
        return not self.lacking


def survey(targets: Iterable[Target]) -> list[Sighting]:
    """Look for each target. An accelerator that seems to be here is asked, by another process."""
    return [_look(target) for target in targets]


def _look(target: Target) -> Sighting:
    lacking = target.lacking() or ""
    if target.words:
        return Sighting(target.name, target.words(), target.devices, lacking)
    return Sighting(target.name, "", 0, lacking) if lacking else _ask(target)


def _ask(target: Target) -> Sighting:
    """Have another process wake the accelerator: here it would stay awake, and its memory taken."""
    variables = {
        "JAX_PLATFORMS": target.platforms,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_ENABLE_COMPILATION_CACHE": "0",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", _LOOK],
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Sighting(target.name, "", 0, f"it did not answer within {TIMEOUT_S:g} s")
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["JAX ended without a word"])[-1]
        return Sighting(target.name, "", 0, f"JAX cannot use it: {said[:300]}")
    seen = [tuple(pair) for pair in json.loads(done.stdout.splitlines()[-1])]
    kinds = Counter(kind for platform, kind in seen if platform == target.family)
    if not kinds:
        return Sighting(target.name, "", 0, "JAX's plugin did not start; the CPU is all it has")
    return Sighting(target.name, ", ".join(sorted(kinds)), kinds.total())
