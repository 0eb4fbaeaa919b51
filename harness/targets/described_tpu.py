"""TPUs that are compiled for and not run: libtpu knows them by name, and needs no device."""

from __future__ import annotations

import importlib.util
import re
from functools import partial
from importlib import metadata

from harness.targets.host import installed
from harness.targets.target import Target

_ENVIRONMENT = {
    # Without these libtpu asks Google's metadata server what it runs on, and waits.
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",  # any will do: the topology says what is built for
    "TPU_WORKER_ID": "0",
    "TPU_WORKER_HOSTNAMES": "localhost",
    # Only one process may hold a TPU, and a lock in /tmp sees to it. Here there is none to hold,
    # and a second process would be refused (libtpu 0.0.42 to 0.0.50).
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_LOG_DIR": "disabled",  # else files pile up in /tmp/tpu_logs
}


def _lacking() -> str | None:
    if not importlib.util.find_spec("libtpu"):
        return "libtpu is not installed (extra 'targets')"
    return None


def _words(device: str) -> str:
    words = f"{device}, compiled for and not run"
    named = " ".join(metadata.requires("jax") or ())
    wanted, there = re.search(r"\blibtpu\s*\(?==\s*([\w.*]+)", named), installed("libtpu")
    if not wanted or not there or there.startswith(wanted[1].removesuffix("*")):
        return words
    # It may work, and is in every record.
    return f"{words} (libtpu is {there}; this JAX names {wanted[1]})"


def described(name: str, device: str, topology: str, devices: int) -> Target:
    """Return the target `tpu:NAME`: the topology of one host, and the devices JAX sees in it."""
    return Target(
        f"tpu:{name}",
        platforms="cpu",
        lacking=_lacking,
        words=partial(_words, device),
        compile_only=device,
        environment=_ENVIRONMENT,
        description=topology,
        devices=devices,
    )


KNOWN = (
    described("v6e", "TPU v6 lite", "v6e:2x2", 4),
    described("v5e", "TPU v5 lite", "v5e:2x2", 4),
    described("v5p", "TPU v5", "v5p:2x2x1", 4),
    described("v7x", "TPU7x", "tpu7x:2x2x1", 8),
    described("v4", "TPU v4", "v4:2x2x1", 8),
    described("v3", "TPU v3", "v3:2x2", 8),
)
"""TPUs that libtpu 0.0.42 to 0.0.50 compile for without a device."""
