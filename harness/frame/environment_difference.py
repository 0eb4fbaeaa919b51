"""What differs between two environments, in a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

UNKNOWN = "not recorded"
"""The difference where one of the two environments is not known."""

ARROW = " → "
"""Between what was and what is."""

_FIRST = ("python", "jax", "jaxlib")
_SECTIONS = ("plugins", "flags", "host")
_NAMES = {"ram_bytes": "memory", "arch": "architecture", "affinity": "usable cores"}
_GIB = 2**30


def environment_difference(before: str, after: str) -> str:
    """Return what differs between two environments, such as `jax 0.11.2 → 0.12.0.1, flags equal`.

    Versions come first, then plugins, flags, device and host. That all flags are equal is said
    where something else is not, as `XLA_FLAGS equal` where they hold any.

    Args:
        before: the JSON text of a record's environment, as in the frame's column `environment`.
        after: the same of what is compared with it.

    Returns:
        "" where nothing that is recorded differs; :data:`UNKNOWN` where either holds none.
    """
    if before and before == after:
        return ""
    old, new = _parsed(before), _parsed(after)
    if not old or not new:
        return UNKNOWN
    parts = [
        part
        for name in dict.fromkeys((*_FIRST, *old, *new))
        if name not in _SECTIONS
        for part in _changed(name, old.get(name), new.get(name))
    ]
    for section in _SECTIONS:
        one, other = _section(old, section), _section(new, section)
        found = [
            part
            for name in dict.fromkeys((*one, *other))
            for part in _changed(name, one.get(name), other.get(name))
        ]
        parts += found
    if parts and _section(old, "flags") == _section(new, "flags"):
        parts.append("XLA_FLAGS equal" if "XLA_FLAGS" in _section(new, "flags") else "flags equal")
    return ", ".join(parts)


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _section(environment: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = environment.get(name)
    return found if isinstance(found, dict) else {}


def _changed(name: str, old: Any, new: Any) -> list[str]:
    if old == new:
        return []
    if name == "XLA_FLAGS":
        return [f"XLA_FLAGS {_flags_text(str(old or ''), str(new or ''))}"]
    before, after = _text(name, old), _text(name, new)
    return [f"{_NAMES.get(name, name)} {before}{ARROW}{after}"] if before != after else []


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
    return str(value)
