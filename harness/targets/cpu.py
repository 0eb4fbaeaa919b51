"""The CPU of this machine."""

from __future__ import annotations

import os

from harness.errors import UsageError
from harness.targets.host import affinity, host
from harness.targets.target import Target

VIRTUAL_CPU_DEVICES = 2
"""CPU devices made for `sharded` and `pmap`, unless JAX_NUM_CPU_DEVICES says otherwise."""


def virtual_cpu_devices() -> int:
    """Return how many CPU devices a process gets whose cases need several."""
    text = os.environ.get("JAX_NUM_CPU_DEVICES", "")
    if not text:
        return VIRTUAL_CPU_DEVICES
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"JAX_NUM_CPU_DEVICES is {text!r}; expected a whole number of at least 1.")
    return int(text)


TARGET = Target(
    "cpu",
    platforms="cpu",
    lacking=lambda: None,
    words=lambda: f"{host()['cpu']}, {affinity()} cores for this process",
    devices=1,
)
