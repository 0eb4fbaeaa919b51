"""A fleet on this machine: a real scheduler and real workers, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from distributed import Client

from harness.records.schema import Problems, Record, read_file
from harness.records.store import record_files
from tests import started
from tests.repositories import git

ROOT = Path(__file__).resolve().parents[1]

MARK = "HARNESS_TESTED_FLEET"
"""In the environment of every process of a fleet: by it those that are left over are found."""

MEASURES = "harness.measure.worker"


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def commit(folder: Path) -> None:
    """Make a git repository of a folder, with one commit of all that is in it."""
    for words in ("init -q", "add .", "commit -qm suite"):
        git(folder, *words.split())


def measured(results: Path) -> list[Record]:
    """Return every record of a case in a results tree, repeated ones too."""
    problems = Problems()
    records = [record for file in record_files(results) for record in read_file(file, problems)]
    assert not problems, problems
    return [record for record in records if record.workload not in ("process", "reference")]


def times(results: Path) -> Counter[tuple[str, ...]]:
    """Return how often each process has measured each case, on whatever machine."""
    return Counter(
        (record.workload, str(record.axes), record.protocol, record.replicate)
        for record in measured(results)
        if record.status == "ok"
    )


@dataclass
class Fleet:
    """A scheduler and workers that run in a folder, and are started again where needed."""

    folder: Path
    """Holds the project (`project/benchmarks/`), and logs."""
    modules: Mapping[str, str]
    """The modules of workloads, by name."""
    machines: Sequence[str] = ("alpha", "beta")
    """The names of machines that the workers pass for."""
    bare: Sequence[str] = ("beta",)
    """The machines whose worker has no nanny."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """More of the environment of each process."""
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.project = self.folder / "project"
        benchmarks = self.project / "benchmarks"
        benchmarks.mkdir(parents=True)
        for name, text in {"__init__": "", **self.modules}.items():
            (benchmarks / f"{name}.py").write_text(text)
        commit(self.project)
        self.elsewhere = self.folder / "elsewhere"  # where workers find no workloads
        self.elsewhere.mkdir()

    def environment(self, machine: str = "") -> dict[str, str]:
        """Return the environment of a process of the fleet."""
        path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **os.environ,
            MARK: str(self.folder),
            "PYTHONPATH": os.pathsep.join(path),
            "JAX_PLATFORMS": "cpu",
            "HARNESS_LOCKS": str(self.folder),  # others may measure on this machine
            **({"HARNESS_MACHINE": machine} if machine else {}),
            **self.variables,
        }

    def start(self) -> None:
        """Start what does not run."""
        for name in ("scheduler", *self.machines):
            if name not in self.running or self.running[name].poll() is not None:
                words = ["scheduler", "--port", str(self.port), "--host", "127.0.0.1"]
                if name != "scheduler":
                    words = ["worker", self.address, "--nthreads", "1", "--name", name]
                    words += ["--local-directory", str(self.folder / "dask" / name)]
                    words += ["--no-nanny"] if name in self.bare else []
                self.running[name] = self.launch(name, "dask", *words, "--no-dashboard")

    def launch(self, name: str, module: str, *words: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a program of the fleet, with a log of that name."""
        client = module == "harness"
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, *words],
                cwd=self.project if client else self.elsewhere,
                env=self.environment("" if client else name) | more,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        """Start `harness run --on` the fleet; its messages are in `client.log`."""
        (self.folder / "client.log").unlink(missing_ok=True)
        return self.launch("client", "harness", "run", "--on", self.address, *words, **more)

    def log(self, name: str = "client") -> str:
        """Return what a process has written."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

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

    def measuring(self) -> list[psutil.Process]:
        """Return the processes that measure for this fleet."""
        found = []
        for one in self.processes():
            with contextlib.suppress(psutil.Error):
                found += [one] if MEASURES in " ".join(one.cmdline()) else []
        return found

    def wait(self, workers: int | None = None, timeout_s: float = 90.0) -> None:
        """Wait until so many workers are there, all by default; start again what ends meanwhile."""
        count, until = (
            len(self.machines) if workers is None else workers,
            time.monotonic() + timeout_s,
        )
        while True:
            with (
                contextlib.suppress(OSError, TimeoutError),
                Client(self.address, timeout=5, set_as_default=False) as client,
            ):
                client.wait_for_workers(count, timeout=10)
                return
            self.start()
            assert time.monotonic() < until, f"{count} workers did not come to {self.address}"

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
        lines = []
        for one in left:
            with contextlib.suppress(psutil.Error):
                lines.append(" ".join(one.cmdline()))
                one.kill()
        return lines


@contextlib.contextmanager
def fleet(folder: Path, modules: Mapping[str, str], **options: object) -> Iterator[Fleet]:
    """Start a fleet that is gone afterwards, whatever happens."""
    made = Fleet(folder, modules, **options)  # type: ignore[arg-type]
    try:
        made.start()
        yield made
    finally:
        made.stop(5.0)
