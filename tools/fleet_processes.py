"""A fleet on this machine: a real scheduler and real workers, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests import started
from tests.repositories import git

ROOT = Path(__file__).resolve().parents[2]

MARK = "HARNESS_TESTED_FLEET"
"""In the environment of every process of a fleet: by it those that are left over are found."""


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def commit(folder: Path) -> None:
    """Make a git repository of a folder, with one commit of all that is in it."""
    for words in ("init -q", "add .", "commit -qm suite"):
        git(folder, *words.split())


def committed(folder: Path, modules: Mapping[str, str]) -> None:
    """Make a git repository with modules of workloads."""
    benchmarks = folder / "benchmarks"
    benchmarks.mkdir(parents=True)
    for name, text in {"__init__": "", **modules}.items():
        (benchmarks / f"{name}.py").write_text(text)
    commit(folder)


@dataclass
class Fleet:
    """A scheduler and workers that were started in a folder, and are started again where needed."""

    folder: Path
    """Holds the project (`project/`, with its benchmarks), and logs."""
    machines: Sequence[str]
    bare: Sequence[str] = ()
    """The machines whose worker has no nanny."""
    preload: str = ""
    """A module that each worker imports first."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """More of the environment of each process."""
    port: int = field(default_factory=free_port)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where the scheduler listens."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def project(self) -> Path:
        """The git repository with the workloads."""
        return self.folder / "project"

    def environment(self, machine: str = "") -> dict[str, str]:
        """Return the environment of a process of the fleet."""
        found = {
            **os.environ,
            MARK: str(self.folder),
            "PYTHONPATH": os.pathsep.join(
                [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            "JAX_PLATFORMS": "cpu",
            "JAX_ENABLE_COMPILATION_CACHE": "0",
            **self.variables,
        }
        if machine:
            found |= {"HARNESS_MACHINE": machine, "HARNESS_CLASS": machine}
        return found

    def start(self) -> list[str]:
        """Start what does not run; return the names of that."""
        new = []
        for name in ("scheduler", *self.machines):
            there = self.running.get(name)
            if there is None or there.poll() is not None:
                self.running[name] = self._start(name)
                new.append(name)
        return new

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        dask = [sys.executable, "-m", "dask"]
        if name == "scheduler":
            command = [*dask, "scheduler", "--port", str(self.port), "--no-dashboard"]
            command += ["--host", "127.0.0.1"]
        else:
            command = [*dask, "worker", self.address, "--nthreads", "1", "--resources", "cpu=1"]
            command += ["--no-dashboard", "--local-directory", str(self.folder / "dask" / name)]
            command += ["--no-nanny"] if name in self.bare else []
            command += ["--preload", self.preload] if self.preload else []
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.project,
                env=self.environment("" if name == "scheduler" else name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def process(self, name: str) -> psutil.Process:
        """Return the process that works for a machine, or the scheduler's; not its nanny.

        Raises:
            psutil.NoSuchProcess: there is none at the moment.
        """
        top = psutil.Process(self.running[name].pid)
        if name == "scheduler" or name in self.bare:
            return top
        for child in top.children():
            if any("spawn_main" in part for part in child.cmdline()):
                return child
        raise psutil.NoSuchProcess(top.pid)

    def processes(self) -> list[psutil.Process]:
        """Return every process that was started for this fleet and still runs."""
        return started.of(str(self.folder), MARK)

    def wait(self, workers: int, timeout_s: float = 60.0) -> None:
        """Wait until so many workers have come; start again what ends meanwhile."""
        from distributed import Client

        until = time.monotonic() + timeout_s
        while True:
            with (
                contextlib.suppress(OSError, TimeoutError),
                Client(self.address, timeout=5, set_as_default=False) as client,
            ):
                client.wait_for_workers(workers, timeout=5)
                return
            self.start()
            assert time.monotonic() < until, f"{workers} workers did not come to {self.address}"

    def stop(self, patience_s: float = 15.0) -> list[str]:
        """Ask all to end, and return the command lines of those that did not; they are killed.

        The scheduler comes last: a worker that gets a signal while it ends because its scheduler
        does may wait for itself for ever (distributed 2026.8).
        """
        until = time.monotonic() + patience_s
        for last in (False, True):
            asked = [p for name, p in self.running.items() if (name == "scheduler") is last]
            for process in asked:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
            while any(process.poll() is None for process in asked) and time.monotonic() < until:
                time.sleep(0.1)
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.2)
        told = []
        for found in left:
            with contextlib.suppress(psutil.Error):
                told.append(" ".join(found.cmdline()))
                found.kill()
        return told


@contextlib.contextmanager
def fleet(*arguments: object, **options: object) -> Iterator[Fleet]:
    """Make a fleet that is gone afterwards, whatever happens."""
    made = Fleet(*arguments, **options)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.stop(5.0)
