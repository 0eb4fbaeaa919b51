"""Whether measurements come from alike machines: what their environments say of host and device.

A machine is known by the name that its results stand under. Two names are two machines, whatever
they are made of; and one name stands for unlike machines where processor, cores, memory or device
differ. Values of unlike machines are not held against each other unless that is asked for by name.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import HarnessWarning
from harness.frame.environment_difference import ARROW

if TYPE_CHECKING:
    import pandas as pd

MEMORY = 0.05
"""Share by which the memory of alike machines may differ: kernels keep more or less of it."""

REMEDY = "Give each a name of its own: HARNESS_MACHINE, or --machine."
"""What to do where one name stands for unlike machines."""

NEEDED = ("machine", "target", "environment")
"""Columns of a frame that tell machines apart."""

_GIB = 2**30


class Hardware(NamedTuple):
    """What a measurement ran on; None for what its record does not say."""

    cpu: str | None
    architecture: str | None
    cores: int | None
    ram_bytes: float | None
    device: str | None
    """The kind of device, such as `NVIDIA H200`."""


@lru_cache(maxsize=4096)
def hardware(environment: str | None) -> Hardware:
    """Return what the environment of a record says; a row of asv's says nothing."""
    try:
        found = json.loads(environment or "{}")
    except (TypeError, ValueError):
        found = {}
    found = found if isinstance(found, dict) else {}
    host = found.get("host")
    host = host if isinstance(host, Mapping) else {}
    ram = host.get("ram_bytes")
    return Hardware(
        host.get("cpu") or None,
        host.get("arch") or None,
        host.get("cores") or None,
        ram if isinstance(ram, int | float) and ram > 0 else None,
        found.get("device") or None,
    )


def difference(a: Hardware, b: Hardware) -> str:
    """Return what differs, such as `2 → 8 cores, memory 23.5 → 62.8 GiB`; "" for alike ones.

    What is not known of one of them is no difference.
    """
    parts = [
        f"{name} {old}{ARROW}{new}"
        for name, old, new in (
            ("processor", a.cpu, b.cpu),
            ("architecture", a.architecture, b.architecture),
            ("cores", a.cores, b.cores),
        )
        if old is not None and new is not None and old != new
    ]
    if a.ram_bytes and b.ram_bytes and abs(a.ram_bytes / b.ram_bytes - 1) > MEMORY:
        parts.append(f"memory {a.ram_bytes / _GIB:.1f}{ARROW}{b.ram_bytes / _GIB:.1f} GiB")
    if a.device and b.device and a.device != b.device:
        parts.append(f"device {a.device}{ARROW}{b.device}")
    return ", ".join(parts)


def row_difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """Return how the machines of two rows differ; "" for one machine, or alike ones of one name.

    Targets that differ have other devices by intention, so these count only where targets agree.
    """
    old, new = hardware(a["environment"]), hardware(b["environment"])
    if a["target"] != b["target"]:
        old, new = old._replace(device=None), new._replace(device=None)
    differs = difference(old, new)
    if a["machine"] != b["machine"]:
        names = f"{a['machine']}{ARROW}{b['machine']}"
        return f"{names} ({differs or 'nothing else recorded of them differs'})"
    return f"two unlike machines called {a['machine']} ({differs})" if differs else ""


def numbers(environments: Iterable[str | None]) -> list[int]:
    """Return a number per environment that those of alike machines share, 0 for the first."""
    known: list[Hardware] = []
    found: dict[Hardware, int] = {}
    result = []
    for environment in environments:
        own = hardware(environment)
        if own not in found:
            place = next((n for n, one in enumerate(known) if not difference(one, own)), len(known))
            if place == len(known):
                known.append(own)
            found[own] = place
        result.append(found[own])
    return result


def shared_names(frame: pd.DataFrame) -> dict[str, str]:
    """Return the names that unlike machines share, and what differs between the first two."""
    import pandas as pd

    found: dict[str, str] = {}
    if not set(NEEDED) <= set(frame.columns):
        return found
    codes = pd.DataFrame({name: pd.factorize(frame[name])[0] for name in NEEDED})
    known = frame[list(NEEDED)][~codes.duplicated().to_numpy()]
    for (machine, _), part in known.groupby(["machine", "target"], sort=False):
        texts = part["environment"].tolist()
        first: dict[int, str] = {}
        for text, number in zip(texts, numbers(texts), strict=True):
            first.setdefault(number, text)
        if len(first) > 1:
            one, other = (hardware(first[number]) for number in (0, 1))
            found.setdefault(str(machine), difference(one, other))
    return found


def warn_of_shared_names(frame: pd.DataFrame, where: object) -> None:
    """Warn the caller's caller of each name that unlike machines share."""
    for machine, differs in shared_names(frame).items():
        warnings.warn(
            f"{where}: unlike machines share the name {machine!r} ({differs}). They are not "
            f"compared with each other. {REMEDY}",
            HarnessWarning,
            stacklevel=3,
        )
