"""What `pytest --jax-profile` does: one file per process, the test of each build, and a summary."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.errors import HarnessError, UsageError
from harness.jaxhooks import session
from harness.jaxhooks.events import Run
from harness.jaxhooks.programs import new_folder, write_run
from harness.jaxhooks.writer import Writer

_FOLDER = "jax_profile"
"""Under which name a worker of pytest-xdist gets the folder."""


def begin(config: pytest.Config, asked: str) -> PytestRecording:
    """Return what records from here on, in the folder that was asked for or a new one.

    Raises:
        pytest.UsageError: it cannot be done.
    """
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        folder = Path(worker[_FOLDER])
    else:
        try:
            folder = new_folder(Path(asked) if asked else None)
        except UsageError as error:
            raise pytest.UsageError(
                f"--jax-profile: {error} The folder is written behind =, as in "
                "--jax-profile=FOLDER; without one, --jax-profile comes last."
            ) from None
    # With workers this process runs no test, and needs no JAX.
    alone = worker is not None or not getattr(config.option, "numprocesses", None)
    try:
        return PytestRecording(folder, worker is None, alone)
    except HarnessError as error:
        raise pytest.UsageError(f"--jax-profile: {error}") from None


class PytestRecording:
    """The plugin's work: pytest calls its methods."""

    def __init__(self, folder: Path, first: bool, records: bool) -> None:
        self.folder = folder
        self.first = first
        self.output = Writer(folder) if records else None
        self.about = Run(tuple(sys.orig_argv), time.perf_counter_ns())
        if self.output is not None:
            session.start(self.output, "pytest")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist where to write."""
        node.workerinput[_FOLDER] = str(self.folder)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Name the test that runs, its fixtures included."""
        session.set_test(item.nodeid)
        try:
            return (yield)
        finally:
            session.set_test("")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """End this process's file, and in the first process the profile."""
        if self.output is not None:
            session.stop(self.output, "exit")
        if self.first:
            end_ns = time.perf_counter_ns()
            code = int(exitstatus)
            write_run(self.folder, replace(self.about, end_ns=end_ns, exit_code=code))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the summary of the profile."""
        terminalreporter.section("JAX profile")
        try:
            width = min(terminalreporter.config.get_terminal_writer().fullwidth, 120)
            # Behind it are the folder's name, and pytest's last line.
            lines = shutil.get_terminal_size().lines - 3 if sys.stdout.isatty() else None
            for line in harness.load_profile(self.folder).summary(width, lines):
                terminalreporter.write_line(line)
        except HarnessError as error:
            terminalreporter.write_line(str(error))
        terminalreporter.write_line(f"Profile: {self.folder}")
