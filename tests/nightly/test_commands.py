"""The commands that a night starts."""

from __future__ import annotations

import sys

import pytest

from harness.nightly.environments import Runner

DIES = """
import os, pathlib, signal
said = pathlib.Path("said")
before = said.read_text() if said.exists() else ""
said.write_text(before + "x")
if len(before) < {times}:
    os.kill(os.{whose}(), signal.SIGKILL)
"""


@pytest.mark.parametrize("whose", ["getpid", "getppid"], ids=["itself", "what watches it"])
@pytest.mark.parametrize(("times", "code"), [(0, 0), (1, 0), (9, 137)])
def test_a_command_that_is_killed_is_run_once_more(tmp_path, times, code, whose):
    command = [sys.executable, "-c", DIES.format(times=times, whose=whose)]
    assert Runner(tmp_path).run(command, tmp_path / "log") == code
    assert (tmp_path / "said").read_text() == "x" * min(times + 1, 2)


def test_a_command_that_fails_is_not_run_again(tmp_path):
    command = [sys.executable, "-c", "print('once'); raise SystemExit(3)"]
    assert Runner(tmp_path).run(command, tmp_path / "log") == 3
    assert (tmp_path / "log").read_text() == "once\n"
