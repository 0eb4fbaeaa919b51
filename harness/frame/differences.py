"""What differs between measurements: their environments, their machines and their programs.

A machine is known by the name that its results stand under. Two names are two machines, whatever
they are made of; and one name stands for unlike machines where processor, cores, memory or device
differ. Values of unlike machines are not held against each other unless that is asked for by name.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from harness.errors import HarnessWarning
from harness.program import difference as programs
from harness.program.facts import BUILT, Facts

UNKNOWN = "not recorded"
"""The difference where one of the two environments is not known."""

MOST_VERSION = 16
"""Characters of a version of a workload that are shown: asv's own have 64."""

ARROW = " → "
"""Between what was and what is."""

_FIRST = ("python", "jax", "jaxlib")
_SECTIONS = ("", "plugins", "flags", "host")
"""Parts of an environment in the order in which they are told; the first has no name."""

_NAMES = {"ram_bytes": "memory", "arch": "architecture", "affinity": "usable cores"}

MEMORY = 0.05
"""Share by which the memory of alike machines may differ: kernels keep more or less of it."""

REMEDY = "Give each a name of its own: HARNESS_MACHINE, or --machine."
"""What to do where one name stands for unlike machines."""

NEEDED = ("machine", "target", "environment")
"""Columns of a frame that tell machines apart."""

_GIB = 2**30


@lru_cache(maxsize=1024)
def environment_difference(before: str, after: str, besides: frozenset[str] = frozenset()) -> str:
    """Return what differs between two environments, such as `jax 0.11.2 → 0.12.0.1, flags equal`.

    Versions come first, then plugins, flags, device and host. That all flags are equal is said
    where something else is not, as `XLA_FLAGS equal` where they hold any.

    Args:
        before: the JSON text of a record's environment, as in the frame's column `environment`.
        after: the same of what is compared with it.
        besides: what is not told, as `jax` where releases are compared.

    Returns:
        "" where nothing that is recorded differs; :data:`UNKNOWN` where either holds none.
    """
    if before and before == after:
        return ""
    old, new = (
        {(name, key): value for name, one in sections(text).items() for key, value in one.items()}
        for text in (before, after)
    )
    if not old or not new:
        return UNKNOWN
    names = dict.fromkeys((*(("", name) for name in _FIRST), *old, *new))
    parts = [
        text
        for section, name in sorted(names, key=lambda place: _SECTIONS.index(place[0]))
        if (section or name not in besides)
        and (text := _changed(name, old.get((section, name)), new.get((section, name))))
    ]
    flags = [place for place in {**old, **new} if place[0] == "flags"]
    if parts and all(place in old and old[place] == new.get(place) for place in flags):
        parts.append("XLA_FLAGS equal" if ("flags", "XLA_FLAGS") in flags else "flags equal")
    return ", ".join(parts)


def sections(text: str | None) -> dict[str, dict[str, Any]]:
    """Return what an environment says, by :data:`_SECTIONS`; nothing where the text is none."""
    try:
        decoded = json.loads(text or "")
    except (TypeError, ValueError):
        decoded = None
    about = decoded if isinstance(decoded, dict) else {}
    named = {name: about.pop(name, None) for name in _SECTIONS[1:]}
    return {"": about, **{name: one for name, one in named.items() if isinstance(one, dict)}}


def _changed(name: str, old: Any, new: Any) -> str:
    if old == new:
        return ""
    if name == "XLA_FLAGS":
        return f"XLA_FLAGS {_flags_text(str(old or ''), str(new or ''))}"
    before, after = _text(name, old), _text(name, new)
    return f"{_NAMES.get(name, name)} {before}{ARROW}{after}" if before != after else ""


def _flags_text(old: str, new: str) -> str:
    """Return flags that came and went; the whole values where only their order differs."""
    one, other = old.split(), new.split()
    gone = [f"-{flag}" for flag in one if flag not in other]
    come = [f"+{flag}" for flag in other if flag not in one]
    return " ".join(gone + come) or f"{old}{ARROW}{new}"


def _text(name: str, value: Any) -> str:
    if value is None or value == "":
        return "none"
    if name == "ram_bytes" and isinstance(value, int | float):
        return f"{value / _GIB:.1f} GiB"
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(str(value).split())


def facts_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the facts that differ, such as `+1 fusion, +4.1 kB temporary`.

    Args:
        before: facts by name (:data:`harness.program.facts.BUILT`), of which other keys are left
            alone: a row of the frame will do. A fact that is absent, None or NaN is not known.
        after: the same of what is compared with it.

    Returns:
        "" where none differs; a fact that only one side knows is no difference.
    """
    shared = [name for name in BUILT if _is_known(before.get(name)) and _is_known(after.get(name))]
    old, new = (
        msgspec.convert({name: float(facts[name]) for name in shared}, Facts, strict=False)
        for facts in (before, after)
    )
    return programs.facts_difference(old, new)


def _is_known(value: Any) -> bool:
    return value is not None and value == value


class Hardware(NamedTuple):
    """What a measurement ran on; None for what its record does not say."""

    processor: str | None
    architecture: str | None
    cores: int | None
    memory: float | None
    """In bytes."""
    device: str | None
    """The kind of device, such as `NVIDIA H200`."""


@lru_cache(maxsize=4096)
def hardware(environment: str | None) -> Hardware:
    """Return what the environment of a record says; a row of asv's says nothing."""
    about = sections(environment)
    host = about.get("host", {})
    ram = host.get("ram_bytes")
    return Hardware(
        host.get("cpu") or None,
        host.get("arch") or None,
        host.get("cores") or None,
        ram if isinstance(ram, int | float) and ram > 0 else None,
        about[""].get("device") or None,
    )


def difference(a: Hardware, b: Hardware) -> str:
    """Return what differs, such as `2 → 8 cores, memory 23.5 → 62.8 GiB`; "" for alike ones.

    What is not known of one of them is no difference.
    """
    parts = []
    old: Any
    new: Any
    for name, old, new in zip(Hardware._fields, a, b, strict=True):
        if old is None or new is None or old == new:
            continue
        if name != "memory":
            parts.append(f"{name} {old}{ARROW}{new}")
        elif abs(old / new - 1) > MEMORY:
            parts.append(f"memory {old / _GIB:.1f}{ARROW}{new / _GIB:.1f} GiB")
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
    distinct: list[Hardware] = []
    result = []
    for own in map(hardware, environments):
        place = next(
            (n for n, one in enumerate(distinct) if not difference(one, own)), len(distinct)
        )
        if place == len(distinct):
            distinct.append(own)
        result.append(place)
    return result


def shared_names(frame: pd.DataFrame) -> dict[str, str]:
    """Return the names that unlike machines share, and what differs between the first two."""
    shared: dict[str, str] = {}
    if not set(NEEDED) <= set(frame.columns):
        return shared
    codes = pd.DataFrame({name: pd.factorize(frame[name])[0] for name in NEEDED})
    distinct = frame[list(NEEDED)][~codes.duplicated().to_numpy()]
    for (machine, _), part in distinct.groupby(["machine", "target"], sort=False):
        texts = part["environment"].tolist()
        first: dict[int, str] = {}
        for text, number in zip(texts, numbers(texts), strict=True):
            first.setdefault(number, text)
        if len(first) > 1:
            one, other = (hardware(first[number]) for number in (0, 1))
            shared.setdefault(str(machine), difference(one, other))
    return shared


def warn_of_shared_names(frame: pd.DataFrame, where: object) -> None:
    """Warn the caller's caller of each name that unlike machines share."""
    for machine, differs in shared_names(frame).items():
        warnings.warn(
            f"{where}: unlike machines share the name {machine!r} ({differs}). They are not "
            f"compared with each other. {REMEDY}",
            HarnessWarning,
            stacklevel=3,
        )
