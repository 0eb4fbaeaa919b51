"""A table in a notebook of what is built, kept up to date below the cell that opened a profile."""

from __future__ import annotations

import html
import importlib
import sys
import threading
import time
from typing import Any

from harness.errors import UsageError
from harness.profiles.live import Following, State, line_of
from harness.records.units import seconds_text
from harness.watch.writer import Writer

EVERY_S = 1.0


class LiveTable:
    """Shows what a writer's lines say, until it is closed; nothing that goes wrong in it is raised.

    Raises:
        UsageError: this is no notebook.
    """

    def __init__(self, writer: Writer) -> None:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if not hasattr(shell, "kernel"):
            raise UsageError(
                "live=True shows a table in a notebook, and this is none. For a program: "
                "harness profile --live -- python train.py."
            )
        self._display: Any = importlib.import_module("IPython.display")
        self._following = Following(writer.folder or writer.kept)
        self._begin_ns = time.perf_counter_ns()
        self._over = threading.Event()
        self._shown: Any = None
        self._state: State | None = None
        self._show()
        self._thread = threading.Thread(target=self._run, name="harness-live", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Show the end of it, and no more."""
        self._over.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            while not self._over.wait(EVERY_S):
                self._show()
            self._show()
        except Exception:  # a front end that is gone: the program and its profile are what counts
            return

    def _show(self) -> None:
        now_ns = time.perf_counter_ns()
        state = self._following.look(now_ns)
        if state == self._state and not state.running:
            return
        self._state = state
        page = self._display.HTML(_html(state, now_ns, (now_ns - self._begin_ns) / 1e9))
        if self._shown is None:
            self._shown = self._display.display(page, display_id=True)
        else:
            self._shown.update(page)


def _html(state: State, now_ns: int, elapsed_s: float) -> str:
    caption = html.escape(line_of(state, now_ns, elapsed_s))
    rows = [
        [html.escape(one.function), html.escape(one.place), one.builds, seconds_text(one.seconds)]
        for one in state.costliest
    ]
    head = "".join(f"<th>{name}</th>" for name in ("function", "last called", "builds", "took"))
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>"
