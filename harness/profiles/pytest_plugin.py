"""`pytest --jax-profile`: record what the tests make JAX build, and name the test of each build.

Imports next to nothing where it is not asked for. Under pytest-xdist every worker has a file of its
own in the profile's folder.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError, UsageError

OPTION = "jax_profile"
PLUGIN = "harness-jax-profile"

pytest_plugins = ("harness.profiles.pytest_budgets",)
"""Marks and settings for budgets."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--jax-profile`."""
    parser.getgroup("jax-harness").addoption(
        "--jax-profile",
        dest=OPTION,
        nargs="?",
        const="",
        default=None,
        metavar="FOLDER",
        help="Record what the tests make JAX trace, lower and compile, in a folder that is empty "
        "or new (--jax-profile=FOLDER; profile-YYYYMMDD-HHMMSS without one), and summarize it.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record, where that is asked for."""
    asked = config.getoption(OPTION)
    worker = getattr(config, "workerinput", None)
    if asked is None or config.option.help or config.pluginmanager.has_plugin(PLUGIN):
        return
    from harness.watch import programs

    if worker is not None:
        folder = Path(worker[OPTION])
    else:
        try:
            folder = programs.new_folder(Path(asked) if asked else None)
        except UsageError as error:
            raise pytest.UsageError(
                f"--jax-profile: {error} The folder is written behind =, as in "
                "--jax-profile=FOLDER; without one, --jax-profile comes last."
            ) from None
    # With workers this process runs no test, and needs no JAX.
    alone = worker is not None or not getattr(config.option, "numprocesses", None)
    try:
        recording = _Recording(folder, worker is None, alone)
    except HarnessError as error:
        raise pytest.UsageError(f"--jax-profile: {error}") from None
    config.pluginmanager.register(recording, PLUGIN)


class _Recording:
    """The plugin's work, registered where it is asked for."""

    def __init__(self, folder: Path, first: bool, records: bool) -> None:
        from harness.watch.events import Run
        from harness.watch.writer import Writer

        self.folder = folder
        self.first = first
        self.output = Writer(folder) if records else None
        self.about = Run(tuple(sys.orig_argv), time.perf_counter_ns())
        if self.output is not None:
            from harness.watch import session

            session.start(self.output, "pytest")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist where to write."""
        node.workerinput[OPTION] = str(self.folder)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Name the test that runs, its fixtures included."""
        from harness.watch import session

        session.set_test(item.nodeid)
        try:
            return (yield)
        finally:
            session.set_test("")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """End this process's file, and in the first process the profile."""
        from dataclasses import replace

        from harness.watch.programs import write_run

        if self.output is not None:
            from harness.watch import session

            session.stop(self.output, "exit")
        if self.first:
            end_ns = time.perf_counter_ns()
            code = int(exitstatus)
            write_run(
                self.folder,
                replace(self.about, end_ns=end_ns, exit_code=code),
            )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the summary of the profile."""
        from harness.profiles.answer.summary import summary
        from harness.profiles.recorded import read

        terminalreporter.section("JAX profile")
        try:
            width = min(terminalreporter.config.get_terminal_writer().fullwidth, 120)
            for line in summary(read(self.folder), width):
                terminalreporter.write_line(line)
        except HarnessError as error:
            terminalreporter.write_line(str(error))
        terminalreporter.write_line(f"Profile: {self.folder}")
