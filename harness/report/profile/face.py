"""What `harness.profile` and `harness.load_profile` give: a profile that can be asked."""

from __future__ import annotations

import html
import importlib
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.profiles.answer.summary import summary
from harness.profiles.live import Following, State, line_of
from harness.profiles.recorded import Recorded, read
from harness.records.units import counted, seconds_text
from harness.report import files
from harness.watch.writer import Writer

if TYPE_CHECKING:
    import pandas as pd

EVERY_S = 1.0


class Profile(Recorded):
    """What was recorded of a program, by :func:`harness.profile` or `harness profile`."""

    def __init__(self, *given: Any, how: tuple[float, bool] = (25.0, False), **named: Any) -> None:
        super().__init__(*given, **named)
        self._how = how
        self._table: LiveTable | None = None

    def open(self) -> Profile:
        """Begin to record; see :func:`harness.profile`."""
        sample_ms, live = self._how
        writer = self.record(sample_ms)
        if live:
            try:
                self._table = LiveTable(writer)
            except BaseException:
                self.close()
                raise
        return self

    def close(self) -> None:
        """Record no more; nothing where it is not open."""
        super().close()
        if self._table is not None:
            self._table.close()
            self._table = None

    def __enter__(self) -> Profile:
        return self.open()

    def __exit__(self, *raised: object) -> None:
        self.close()

    def summary(self, width: int = 100, lines: int = 24) -> list[str]:
        """Return the answer as lines of text that fit a screen.

        Args:
            width: of a line, in characters; 60 at least.
            lines: how many there are at most; where even the sums and the next steps need more,
                these stay.
        """
        return summary(self, width, lines)

    def frame(self, table: str = "builds") -> pd.DataFrame:
        """Return one of the tables as a pandas frame; docs/profile.md has their columns.

        Args:
            table: `time`, `functions`, `builds`, `causes`, `sites`, `cache`, `eager` or `threads`.

        Raises:
            UsageError: if there is no such table.
        """
        from harness.profiles.tables.frames import frame  # pandas: half a second

        return frame(self, table)

    def report(self, path: Path | str) -> int:
        """Write everything known as one HTML file that loads nothing; return its size in bytes.

        Raises:
            UsageError: a package that reports need is not installed.
            StoreError: the file cannot be written.
        """
        files.check_report()
        from harness.report.profile.page import write  # altair: a second, of the extra `figures`

        return write(self, Path(path))

    def __repr__(self) -> str:
        where = f" in {self.folder}" if self.folder is not None else ""
        builds = counted(len(self.builds), "build")
        count = f"{builds}, {counted(len(self.processes), 'process')}"
        return f"<harness.Profile: {count}{where}; .summary(), .frame('functions')>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(chr(10).join(self.summary()))}</pre>"


def load_profile(folder: Path | str) -> Profile:
    """Read a profile from its folder; one that is still being written is read as far as it is.

    Args:
        folder: what `harness profile -o FOLDER` or `harness.profile(folder)` wrote.

    Raises:
        ProfileError: if there is none.
    """
    found = read(folder)
    return Profile(found.processes, found.folder, found.run, run_damage=found.run_damage)


def profile(
    folder: Path | str | None = None, *, sample_ms: float = 25.0, live: bool = False
) -> Profile:
    """Return a profile of what JAX builds in this process, on all its threads, while it is open.

    It is open in a `with` block, or from `open()` to `close()`, which may be cells of a notebook,
    and can be asked at any time, inside and afterwards. Several may be open at once, in one thread
    or in many; each has what was built in its own time. What the body raises passes. JAX is
    imported where the program has not done so yet.

    Args:
        folder: where to write the log, a file per process: what is built in a child that this
            process forks is there as well. In memory only without it.
        sample_ms: how often, in milliseconds, to look where threads are; 0 for never.
        live: in a notebook, show a table of what is being built, and of the dearest functions.

    Opening it raises:
        ProfileError: if JAX is not installed, the folder cannot be written, or the running JAX is
            not one that is known.
        UsageError: it was open before, or `live` outside a notebook.
    """
    return Profile(folder=Path(folder) if folder is not None else None, how=(sample_ms, live))


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
