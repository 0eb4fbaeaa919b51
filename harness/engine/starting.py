"""How processes that measure or build are started and ended: their environment and their limits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

from harness.engine.unit import Unit
from harness.sides.variables import owned
from harness.stages.scenarios.cache_state import forgotten
from harness.stages.scenarios.registry import SCENARIOS

STARTUP_TIMEOUT_S = 300.0
"""How long a process may take to import JAX and the workload and to wake its backend."""

STDERR_LINES = 20
"""So many of the last lines that a process wrote are kept, where it failed."""


def child_environment(unit: Unit) -> dict[str, str]:
    """Return the environment of a process for `unit`: the caller's, in the unit's scenario."""
    environment = forgotten(os.environ)
    if unit.backend:  # its scenario is of CuPy's cache: JAX has none
        environment = {name: value for name, value in environment.items() if not owned(name)}
        environment |= SCENARIOS["off"].environment("")
    else:
        environment |= SCENARIOS[unit.scenario].environment(unit.cache_folder)
    environment["JAX_PLATFORMS"] = unit.platforms
    environment |= unit.environment
    if unit.cpu_devices:
        environment["JAX_NUM_CPU_DEVICES"] = str(unit.cpu_devices)
    else:
        environment.pop("JAX_NUM_CPU_DEVICES", None)
    if unit.x64:
        environment["JAX_ENABLE_X64"] = "1"
    return environment


def kill(child: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, and all that it started; return when it is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
