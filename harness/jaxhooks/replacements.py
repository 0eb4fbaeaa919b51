"""Functions of JAX that are replaced for a while, and put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.jaxhooks.jax_names import Point


class Replacements:
    """Replacements of JAX's functions, in place from `install` to `uninstall`.

    A replacement calls JAX's function once, with the same arguments, and passes on what it returns
    or raises; a failure of the noting is counted and never reaches the program.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self.active = False
        self.failed = failed
        """Counts a failure of the noting."""
        self._undo: list[tuple[Point, Any]] = []

    def install(self) -> None:
        """Put the replacements in place."""
        raise NotImplementedError

    def start(self) -> None:
        """Put all of the replacements in place, or none."""
        try:
            self.install()
        except BaseException:
            self.uninstall()
            raise

    def uninstall(self) -> None:
        """Put JAX back as it was."""
        self.active = False
        ours = {id(replacement) for _, replacement in self._undo}
        for point, _ in reversed(self._undo):
            # Whoever replaced it after us keeps theirs; ours underneath passes everything on.
            if id(getattr(point.holder, point.name)) in ours:
                setattr(point.holder, point.name, point.function)
        self._undo.clear()

    def guarded(self, note: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a note returns; None where it fails, which is our own affair."""
        try:
            return note(*arguments)
        except Exception as error:
            self.failed(error)
            return None

    def replace(self, point: Point, replacement: Any) -> None:
        """Put one replacement in place."""
        setattr(point.holder, point.name, replacement)
        self._undo.append((point, replacement))


def error_text(error: BaseException) -> str:
    """Return an error as one line, as an event keeps it."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:500]
