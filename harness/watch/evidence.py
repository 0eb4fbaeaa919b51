"""Evidence: what JAX itself reports while a sample is taken, held against the sample's label."""

from __future__ import annotations

from typing import Any

from harness.watch import jax_names

Counts = dict[str, int]

_KINDS = {**jax_names.DURATIONS, **jax_names.CACHE_EVENTS}


class Evidence:
    """Counts JAX's own events between two readings.

    A cached trace that a new jit object finds again fires the event of a trace as well (jax 0.10
    to 0.12); the stage `trace` tells it by the jaxpr, which is then the very same object.
    """

    def __init__(self) -> None:
        self._counts: Counts = {}
        jax_names.listen(self._on_event, self._on_event)

    def close(self) -> None:
        """Stop listening."""
        jax_names.unlisten(self._on_event, self._on_event)

    def take(self) -> Counts:
        """Return what was counted since the last call, and start again from nothing."""
        counts, self._counts = self._counts, {}
        return counts

    def _on_event(self, event: str, *_: Any, **__: Any) -> None:
        kind = _KINDS.get(event)
        if kind is not None:
            self._counts[kind] = self._counts.get(kind, 0) + 1


def contradiction(seen: Counts, expected: Counts) -> str | None:
    """Return how the events contradict the label, or None where they prove it."""
    if seen == expected:
        return None

    def text(counts: Counts) -> str:
        return ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())) or "no event"

    return f"events show {text(seen)}; the label needs {text(expected)}"
