"""JAX's configuration as a thread sees it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.watch.jax_names import FLAGS, OTHER_SETTINGS, module


class SettingsReader:
    """Reads it cheaply: at every build."""

    def __init__(self, others: Sequence[str] = OTHER_SETTINGS) -> None:
        self._config = module("config")
        self._names = tuple(str(name) for name in self._config.trace_context_names())
        found = {name: self._state(name) for name in others if name not in self._names}
        self._others = tuple(name for name, state in found.items() if state is not None)
        self._states = tuple(found[name] for name in self._others)
        self._known: dict[Any, dict[str, str]] = {}

    def now(self) -> dict[str, str]:
        """Return what is part of a cache's key, and what else changes what is compiled."""
        values = self._config.trace_context()
        rest = tuple([state.value for state in self._states])
        rest += tuple([os.environ.get(name) for name in FLAGS])
        try:
            known = self._known.get((values, rest))
        except TypeError:  # something in it has no hash
            return self._texts(values, rest)
        if known is None:
            if len(self._known) > 1_000:
                self._known.clear()
            known = self._known[values, rest] = self._texts(values, rest)
        return known

    def _texts(self, values: Any, rest: Any) -> dict[str, str]:
        texts = {name: _text(value) for name, value in zip(self._names, values, strict=False)}
        for name, value in zip(self._others + FLAGS, rest, strict=True):
            if value is not None:
                texts[name] = str(value)
        return texts

    def _state(self, name: str) -> Any:
        state = getattr(self._config, name.removeprefix("jax_"), None)
        if hasattr(state, "value"):
            return state
        return (
            _Flag(self._config.config.values, name) if name in self._config.config.values else None
        )


@dataclass(frozen=True)
class _Flag:
    """A setting that is the same on all threads, and no attribute of JAX's module."""

    values: Mapping[str, Any]
    name: str

    @property
    def value(self) -> Any:
        return self.values[self.name]


def _text(value: Any) -> str:
    """Return a setting as text that is the same for equal settings, in every process."""
    if type(value).__name__ == "AxisEnv":  # has no text of its own
        sizes = getattr(value, "axis_sizes", {})
        return ", ".join(f"{name}={size}" for name, size in dict(sizes).items())
    if type(value).__name__ == "XlaMetadata":  # nor has this
        return ", ".join(f"{name}={setting}" for name, setting in sorted(value.val.items()))
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text
