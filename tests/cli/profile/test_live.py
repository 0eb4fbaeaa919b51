"""What `--live` shows, on a terminal and elsewhere."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
import time

import pytest
from rich.console import Console
from rich.text import Text

from harness.cli.profile import told as line
from harness.profiles import live
from harness.profiles.live import Now, State, Tally
from harness.watch import events
from harness.watch.writer import encoded
from tests.watch.programs import COMMAND, environment

S = 1_000_000_000
NOW = Now("loss", "train.py:88", "compile", 58 * S, 3, 42)
BUSY = State(1, 31, 48.2, (NOW,), Tally("step", "train.py:90", 1, 2.1))
IDLE = State(1, 31, 48.2, (), Tally("step", "train.py:90", 1, 2.1), (Tally("loss", "", 4, 40.0),))


FIRST = Now("f", "", "trace", 58 * S, 0, 1)
HOSTILE = Now("a\x1b[2J\nb\u2028", "x\r.py:1", "compile", 69 * S, 0, 1)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (BUSY, "compiling `loss` (train.py:88) for 12 s, 4th time · 31 builds, 48 s of 70 s"),
        (
            IDLE,
            "31 builds, 48 s of 70 s · last `step` (train.py:90), 2.1 s · most `loss`, 40 s",
        ),
        (State(0, 0, 0.0), "0 builds, 0 s of 70 s"),
        (  # the first time is not counted
            State(1, 1, 1.0, (FIRST, NOW, NOW)),
            "tracing `f` for 12 s, and 2 more · 1 build, 1.0 s of 70 s",
        ),
        (
            State(1, 1, 1.0, (HOSTILE,)),
            "compiling `a\\x1b[2J\\x0ab\\x2028` (x\\x0d.py:1) for 1.0 s · 1 build, 1.0 s of 70 s",
        ),
    ],
)
def test_the_line_says_what_is_built_now_or_was_last_and_what_costs_most(state, said):
    assert live.line_of(state, 70 * S, 70.0) == said


def test_ordinals():
    assert " ".join(map(live.ordinal, (1, 2, 3, 4, 11, 12, 21, 102, 113))) == (
        "1st 2nd 3rd 4th 11th 12th 21st 102nd 113th"
    )


def plain(*times):
    """Show states at given seconds, and return what was said at which."""
    stream = io.StringIO()
    shown = line.Plain(stream)
    said = []
    for seconds, state in times:
        shown.show(state, round(seconds * S), seconds)
        said += [(seconds, text) for text in stream.getvalue().splitlines()]
        stream.seek(0)
        stream.truncate()
    return said


def test_without_a_terminal_a_line_comes_every_ten_seconds_while_there_is_news():
    states = [State(1, builds, 1.0) for builds in range(100)]
    said = plain(*((number / 4, states[number // 40]) for number in range(400)))
    assert [seconds for seconds, _ in said] == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert said[0][1] == "harness: 1 build, 1.0 s of 10 s"
    assert len(plain(*((number / 4, IDLE) for number in range(4_000)))) == 1


def test_a_build_that_takes_long_is_told_after_30_s_and_each_minute():
    said = plain(*((number / 4, BUSY) for number in range(58 * 4, 300 * 4)))
    assert [round(seconds) for seconds, text in said if "still" in text] == [88, 118, 178, 238, 298]
    assert said[-1][1] == ("harness: still compiling `loss` (train.py:88) for 4 min 0 s, 4th time")
    assert len(said) == 6


TAKEN_AWAY = "\x1b7\x1b[r\x1b[24H\x1b[2K\x1b8"
"""Of a terminal of 24 lines: all of it scrolls again."""


class Screen(io.StringIO):
    """Keeps what was drawn since it was last asked."""

    def new(self):
        found = self.getvalue()
        self.seek(0)
        self.truncate()
        return found


def test_on_a_terminal_the_line_goes_away_when_nothing_is_built(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "24")
    screen = Screen()
    shown = line.OnTerminal(screen)
    shown.show(BUSY, 70 * S, 70.0)
    drawn = screen.new()
    assert "compiling `loss`" in drawn
    assert "…" in drawn
    for at in (71, 72, 73):
        shown.show(IDLE, at * S, at)
        assert "31 builds" in screen.new()
    shown.show(IDLE, 74 * S, 74.0)
    assert screen.new() == TAKEN_AWAY
    for at in (75, 80, 900):  # a prompt, an editor: nothing is drawn over it
        shown.show(IDLE, at * S, at)
        assert screen.new() == ""
    shown.show(BUSY, 901 * S, 901.0)
    assert "compiling" in screen.new()
    shown.end()
    shown.end()
    assert screen.new() == TAKEN_AWAY


def test_on_a_terminal_what_the_program_writes_scrolls_above_the_line(monkeypatch):
    monkeypatch.setenv("LINES", "24")
    screen = Screen()
    shown = line.OnTerminal(screen)
    shown.show(BUSY, 70 * S, 70.0)
    # Room is made once; then lines 1 to 23 scroll, and the last one is written anew.
    assert screen.new().startswith("\x1bD\x1b[A\x1b7\x1b[1;23r\x1b[24H\x1b[2K")
    shown.show(BUSY, 71 * S, 71.0)
    assert screen.new().startswith("\x1b7\x1b[1;23r\x1b[24H\x1b[2K")
    monkeypatch.setenv("LINES", "30")
    shown = line.OnTerminal(screen)  # rich reads the variables once
    shown._height = 24
    shown.show(BUSY, 72 * S, 72.0)
    assert screen.new().startswith(TAKEN_AWAY + "\x1bD\x1b[A\x1b7\x1b[1;29r")
    monkeypatch.setenv("LINES", "2")  # which is left alone
    shown = line.OnTerminal(screen)
    shown.show(BUSY, 70 * S, 70.0)
    shown.end()
    assert screen.new() == ""


HANGS = """
import time
import jax, numpy as np
def slow(x):
    print("Your name? ", end="", flush=True)
    time.sleep(2.2)
    return x
jax.jit(slow)(np.ones(3))
print("Ada")
"""


def test_a_build_that_hangs_is_seen_on_a_terminal_and_a_prompt_stays_whole(tmp_path):
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "--live", "-o", str(tmp_path / "p"), "--", sys.executable, "-c", HANGS],
        stdout=inner,
        stderr=inner,
        env=environment(TERM="xterm", COLUMNS="100", LINES="24", NO_COLOR="1"),
    )
    os.close(inner)
    text = ""
    # The other end is closed in the end.
    with contextlib.suppress(OSError):
        while more := os.read(outer, 65536):
            text += more.decode()
    os.close(outer)
    assert process.wait() == 0
    _, _, after = text.partition("Your name? ")
    drawn, _, _ = after.partition("Ada")
    assert "tracing `slow` (<string>:8)" in drawn
    assert "\x1b7\x1b[1;23r\x1b[24H\x1b[2K" in drawn
    assert "went into building programs" in after
    assert "\x1b[?25l" not in text


@pytest.mark.parametrize(("term", "drawn"), [("xterm", True), ("dumb", False), ("", False)])
def test_a_terminal_that_cannot_do_it_gets_plain_lines(monkeypatch, term, drawn):
    monkeypatch.setenv("TERM", term)
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    assert line.on_terminal(terminal) == drawn
    assert not line.on_terminal(io.StringIO())


def test_a_stream_that_fails_or_a_folder_that_goes_away_does_not_reach_the_program(tmp_path):
    class Gone(io.StringIO):
        def isatty(self):
            return True

        def write(self, text):
            raise BrokenPipeError

    (tmp_path / "h-1-0.jsonl").write_bytes(encoded(events.Running(1, "compile", 1, 1, 0, 0)))
    for stream in (Gone(), io.StringIO()):
        shown = line.Live(tmp_path / "nowhere" if stream.isatty() else tmp_path, stream)
        shown.__enter__()
        time.sleep(0.4)
        shown.__exit__(None, None, None)
        assert not shown._thread.is_alive()


def test_the_line_is_never_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    screen = Screen()
    shown = line.OnTerminal(screen)
    wide = Now("損失" * 40, "", "compile", 0, 0, 1)
    shown.show(State(1, 1, 1.0, (wide,)), S, 1.0)
    text = screen.new().rpartition("\x1b[2K")[2].removesuffix("\x1b8")
    assert Console().measure(Text.from_ansi(text)).maximum <= 19
