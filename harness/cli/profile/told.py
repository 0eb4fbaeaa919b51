"""What is said of a program that is profiled: while it runs, by `--live`, and afterwards."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.text import Text

from harness.cli.output import check_writable, notes
from harness.errors import ExitCode, HarnessError
from harness.profiles.answer.inside import inside_lines
from harness.profiles.answer.summary import LINES, is_unknown, summary
from harness.profiles.budgets import file
from harness.profiles.live import Following, Now, State, doing, line_of
from harness.profiles.recorded import Recorded, read
from harness.records.printable import printable
from harness.report import files
from harness.watch import programs
from harness.watch.programs import Ran

LOOK_EVERY_S = 0.25
PLAIN_EVERY_S = 10.0
LONG_S = 30.0
"""A build that takes longer is told of where there is no terminal: after 30 s, 1 min, each min."""
IDLE_S = 3.0
"""On a terminal the line goes away when nothing has been built for so long."""

LEAST_HEIGHT = 3
"""Lines of a terminal on which a line is given away."""

# The line stands at the bottom, and what is above it scrolls by itself: lines that the program
# writes never run into it. The cursor goes back to where the program left it.
_ROOM_BELOW = "\x1bD\x1b[A"
_KEEP, _BACK = "\x1b7", "\x1b8"
_SCROLL_ABOVE, _SCROLL_ALL = "\x1b[1;{}r", "\x1b[r"
_EMPTY_LINE = "\x1b[{}H\x1b[2K"


class Live:
    """Shows how a program's builds go while it runs; never raises once it is started.

    Args:
        folder: the profile that is being written; it need not be there yet.
        stream: where to show it: a line that changes on a terminal, plain lines elsewhere.
    """

    def __init__(self, folder: Path, stream: TextIO | None = None) -> None:
        self._folder = Path(folder)
        self._stream = stream if stream is not None else sys.stderr
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="harness-live", daemon=True)

    def __enter__(self) -> Live:
        """Begin to show."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Show no more, and leave a clean line."""
        self._over.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            following = Following(self._folder)
            begin_ns = time.perf_counter_ns()
            shown = OnTerminal(self._stream) if on_terminal(self._stream) else Plain(self._stream)
            try:
                while not self._over.wait(LOOK_EVERY_S):
                    now_ns = time.perf_counter_ns()
                    shown.show(following.look(now_ns), now_ns, (now_ns - begin_ns) / 1e9)
            finally:
                shown.end()
        # A closed terminal, a folder that is gone: the program and its profile are what counts.
        except Exception:
            return


def on_terminal(stream: TextIO) -> bool:
    """Tell whether a line can be drawn over on a stream."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


class OnTerminal:
    """One line at the bottom of the terminal, there while something is being built."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._console = Console(file=stream, force_terminal=True, highlight=False)
        self._height = 0
        """The line that it stands on; 0 while it is not there."""
        self._builds = 0
        self._busy_ns = 0

    def show(self, state: State, now_ns: int, elapsed_s: float) -> None:
        """Draw the line anew, or take it away when there has been nothing to say for a while."""
        if state.running or state.builds != self._builds:
            self._busy_ns, self._builds = now_ns, state.builds
        elif not self._height or now_ns - self._busy_ns > IDLE_S * 1e9:
            self.end()
            return
        self._draw(line_of(state, now_ns, elapsed_s))

    def end(self) -> None:
        """Take the line away."""
        if self._height:
            empty = _EMPTY_LINE.format(self._height)
            self._write(f"{_KEEP}{_SCROLL_ALL}{empty}{_BACK}")
            self._height = 0

    def _draw(self, line: str) -> None:
        width, height = self._console.size
        if height != self._height:
            self.end()
        if height < LEAST_HEIGHT:
            return
        text = Text(line, style="dim")
        text.truncate(max(1, width - 1), overflow="ellipsis")
        with self._console.capture() as captured:
            self._console.print(text, end="")
        room = "" if self._height else _ROOM_BELOW
        place = _SCROLL_ABOVE.format(height - 1) + _EMPTY_LINE.format(height)
        self._write(f"{room}{_KEEP}{place}{captured.get()}{_BACK}")
        self._height = height

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Plain:
    """Lines of a log: now and then while there is news, and when a build takes long."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._said_s = 0.0
        self._said: object = (0, ())
        self._next_s: dict[tuple[int, int], float] = {}
        """When a long build is told of next: by process and begin."""

    def show(self, state: State, now_ns: int, elapsed_s: float) -> None:
        """Say what is new, if it is time."""
        long = [now for now in state.running if self._is_due(now, now_ns)]
        for now in long:
            self._say(f"still {doing(now, now_ns)}")
        news = (state.builds, tuple((now.pid, now.begin_ns) for now in state.running))
        if elapsed_s - self._said_s < PLAIN_EVERY_S or news == self._said:
            return
        self._said_s, self._said = elapsed_s, news
        if not long:
            self._say(line_of(state, now_ns, elapsed_s))

    def end(self) -> None:
        """Say nothing more."""

    def _is_due(self, now: Now, now_ns: int) -> bool:
        key = (now.pid, now.begin_ns)
        took_s = (now_ns - now.begin_ns) / 1e9
        if took_s < self._next_s.get(key, LONG_S):
            return False
        self._next_s[key] = 60.0 * (took_s // 60 + 1)
        return True

    def _say(self, text: str) -> None:
        self._stream.write(f"harness: {text}\n")
        self._stream.flush()


WIDTH, WIDEST = 100, 120
"""Characters of a line where there is no terminal, and on the widest one."""


def answer(profile: Recorded, console: Console | None = None, below: int = 1) -> list[str]:
    """Return a profile's answer: so short that its first line stays on a screen, else all of it.

    For a file `console` is None; `below` are lines of the screen that something else takes, such as
    the shell's prompt.
    """
    if console is None or not console.is_terminal:
        return summary(profile, WIDTH, None)
    return summary(profile, min(console.width, WIDEST), min(LINES, console.height - below))


def check(budget: Path | None, report: Path | None) -> None:
    """Refuse a budget that cannot be read or a report that cannot be written."""
    if budget is not None:
        file.read(budget)
    if report is not None:
        files.check_report()
        check_writable("--report", report)


def tell(ran: Ran, budget: Path | None, report: Path | None) -> int:
    """Say what the profile says, on standard error; return the exit code."""
    if name := programs.signal_of(ran.code):
        _say(f"The program was ended by {name}.")
    if not ran.processes:
        _say(
            f"Nothing was recorded in {ran.folder}: the program ran no Python, or one that ignores "
            "PYTHONPATH (-I, -E, -S) or was started with a cleared environment."
        )
        _missed(budget, report)
        return ran.code or ExitCode.NOTHING
    code = ran.code
    try:
        profile = read(ran.folder)
        _say(*answer(profile, notes, below=2), *inside_lines(profile))
        if is_unknown(profile):
            code = code or ExitCode.NOTHING
        if report is not None:
            from harness.report.profile.page import write  # pandas and altair

            write(profile, report)
            _say(f"Report: {report}")
        if budget is not None:
            over = _judge(profile, budget)
            code = code or over
    except HarnessError as error:  # the program has run: what went wrong afterwards is told
        _say(f"harness: {error}")
        code = code or error.exit_code
    if not ran.complete:
        _say(f"How the program ended could not be written: {ran.folder} is full or gone.")
    _say(f"Profile: {ran.folder}")
    return code


def _missed(budget: Path | None, report: Path | None) -> None:
    """Say what there can be none of without a profile."""
    for path, done in ((budget, "checked"), (report, "written")):
        if path is not None:
            _say(f"harness: {path} cannot be {done} without a profile.")


def _judge(profile: Recorded, budget: Path) -> int:
    """Say how a profile keeps to a budget; return the exit code."""
    result = file.checked(profile, budget)
    stale = (f"{budget}: {text}" for text in result.stale)
    _say(*result.lines(), *stale, result.verdict())
    return ExitCode.WORSE if result.over else 0


def _say(*lines: str) -> None:
    try:
        for line in lines:
            notes.print(printable(line), markup=False, emoji=False, soft_wrap=True)
    except (OSError, SystemExit):  # nobody reads it any more, for which rich ends the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
