"""The TPUs of this machine."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from harness.targets.target import Target


def _lacking() -> str | None:
    if not importlib.util.find_spec("libtpu"):
        return "libtpu is not installed (extra 'tpu')"
    if not (Path("/dev/accel0").exists() or any(Path("/dev/vfio").glob("[0-9]*"))):
        return "no TPU on this machine (neither /dev/accel0 nor /dev/vfio/0)"
    return None


TARGET = Target("tpu", platforms="tpu,cpu", lacking=_lacking)
