"""Replace functions of JAX for as long as somebody listens, however many listen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from harness.watch.jax_names import Point

_L = TypeVar("_L")
_S = TypeVar("_S", bound="EventSource[Any]")


class EventSource(Generic[_L]):
    """Where events come from: replacements of JAX's functions, and who is told.

    A replacement calls JAX's function once, with the same arguments, and passes on what it returns
    or raises; a failure of the noting is counted and never reaches the program.
    """

    def __init__(self) -> None:
        self.listeners: tuple[_L, ...] = ()
        self.active = False
        self._undo: list[tuple[Point, Any]] = []

    def install(self) -> None:
        """Put the replacements in place."""
        raise NotImplementedError

    def uninstall(self) -> None:
        """Put JAX back as it was."""
        self.active = False
        ours = {id(replacement) for _, replacement in self._undo}
        for point, _ in reversed(self._undo):
            # Whoever replaced it after us keeps theirs; ours underneath passes everything on.
            if id(getattr(point.holder, point.name)) in ours:
                setattr(point.holder, point.name, point.function)
        self._undo.clear()

    def replace(self, point: Point, replacement: Any) -> None:
        """Put one replacement in place."""
        setattr(point.holder, point.name, replacement)
        self._undo.append((point, replacement))

    def after_fork(self) -> None:
        """Forget, in a child, what other threads of the parent were at."""


class SharedSource(Generic[_S]):
    """The one source of its kind in a process: made for the first listener, gone with the last."""

    def __init__(self, make: Callable[[], _S]) -> None:
        self.source: _S | None = None
        self._make = make
        self._lock = threading.RLock()

    def add(self, listener: Any) -> _S:
        """Tell a listener everything from now on; raises where the running JAX is not known."""
        with self._lock:
            if self.source is None:
                source = self._make()
                source.listeners = (listener,)
                try:
                    source.install()
                except BaseException:
                    source.uninstall()
                    raise
                self.source = source
            else:
                self.source.listeners = (*self.source.listeners, listener)
            return self.source

    def drop(self, listener: Any) -> None:
        """Tell a listener no more; the last one to leave puts JAX back as it was."""
        with self._lock:
            source = self.source
            if source is None:
                return
            source.listeners = tuple(one for one in source.listeners if one is not listener)
            if not source.listeners:
                self.source = None
                source.uninstall()

    def after_fork(self) -> None:
        """Forget, in a child, what other threads of the parent were at."""
        self._lock = threading.RLock()
        if self.source is not None:
            self.source.after_fork()


def error_text(error: BaseException) -> str:
    """Return an error as one line, as an event keeps it."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:500]
