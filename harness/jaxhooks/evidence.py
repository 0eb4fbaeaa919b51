"""Evidence: what JAX itself reports while a sample is taken, held against the sample's label."""

from __future__ import annotations

import threading
from typing import Any

from harness.jaxhooks import jax_names

Counts = dict[str, int]

_KINDS = {**jax_names.DURATIONS, **jax_names.CACHE_EVENTS}


class Evidence:
    """Counts JAX's own events between two readings.

    A cached trace that a new jit object finds again fires the event of a trace as well (jax 0.10
    to 0.12); the stage `trace` tells it by the jaxpr, which is then the very same object.
    """

    def __init__(self) -> None:
        self.traced: list[tuple[float, str]] = []
        """The seconds and the name of every function that was traced since this listens."""
        self.compiled: list[str] = []
        """The name of every program that was compiled, or loaded, since this listens."""
        self._counts: Counts = {}
        self._spent_s: dict[str, list[float]] = {}
        self._thread = threading.get_ident()
        jax_names.listen(self._on_event, self._on_event)

    def close(self) -> None:
        """Stop listening."""
        jax_names.unlisten(self._on_event, self._on_event)

    def take(self) -> Counts:
        """Return what was counted since the last call, and start again from nothing."""
        counts, self._counts, self._spent_s = self._counts, {}, {}
        return counts

    def programs_ns(self) -> float:
        """Return what programs that were built inside of another step took, as JAX reports it.

        Their lowering and compiling counts, since the last :meth:`take`; of the step's own there
        may be a lowering, which is the longest because it holds theirs.
        """
        lowered, compiled = (sorted(self._spent_s.get(kind, ())) for kind in ("lower", "compile"))
        return 1e9 * (sum(lowered[: len(compiled)]) + sum(compiled))

    def _on_event(self, event: str, *spent_s: float, **about: Any) -> None:
        kind = _KINDS.get(event)
        if kind is None:
            return
        if kind == "trace" and spent_s:
            self.traced.append((spent_s[0], about.get("fun_name", "")))
        if kind == "compile":
            self.compiled.append(about.get("fun_name", ""))
        if threading.get_ident() != self._thread:
            kind = f"{kind} in another thread"
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._spent_s.setdefault(kind, []).extend(spent_s)


def programs_within(seen: Counts, expected: Counts) -> int:
    """Return how many whole programs were built inside of a step that runs the user's Python.

    A function may have values computed while it is traced or lowered
    (`jax.ensure_compile_time_eval`): JAX then traces, lowers and compiles them, or loads them from
    the persistent cache, where it stands. 0 where the events are not those of the step and of
    whole programs.
    """
    more = {kind: seen.get(kind, 0) - expected.get(kind, 0) for kind in {*seen, *expected}}
    count = more.pop("compile", 0)
    lowered, traced = more.pop("lower", 0), more.pop("trace", 0)
    requests = more.pop("request", 0)
    answers = [more.pop(kind, 0) for kind in ("hit", "write", "entry")]
    whole = lowered == count and traced >= 0 and requests in (0, count)
    whole = whole and all(0 <= one <= requests for one in answers) and not any(more.values())
    return max(count, 0) if whole else 0


def contradiction(seen: Counts, expected: Counts) -> str | None:
    """Return how the events contradict the label, or None where they prove it."""
    if seen == expected:
        return None

    def text(counts: Counts) -> str:
        return ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())) or "no event"

    kept = {"hit", "write"}
    unkept = "request" in seen and kept & expected.keys() and not kept & seen.keys()
    why = "; JAX wrote no entry: up to 0.10 of no program with a host callback" if unkept else ""
    return f"events show {text(seen)}; the label needs {text(expected)}{why}"
