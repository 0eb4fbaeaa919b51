"""A fleet of real processes on this machine: a Dask scheduler, workers, and clients."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from distributed import Client

import harness
from harness.declare import location
from harness.fleet.pools import DaskPool
from harness.records.store import Store, record_files
from tests import forks
from tests.fleet.hands import sweep
from tests.repositories import git
from tools.performance.fleet_processes import free_port

REPOSITORY = Path(harness.__file__).parents[1]
SUITES = REPOSITORY / "tests" / "suites"

WORKER = "harness.engine.worker"

SLOW = '''"""Cases that take a while each, most of it to trace."""

import time

import jax.numpy as jnp

from harness import Workload, spec


class Slow(Workload):
    """Slow to trace."""

    targets = ("cpu",)
    sweep = {"size": [8, 16, 24]}

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        time.sleep(0.15)
        return jnp.sin(x)
'''


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process of the fleet in `folder`."""
    return {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "JAX_PLATFORMS": "cpu",
        "HARNESS_LOCKS": str(folder),  # other tests may run on this machine
        **more,
    }


def project(folder: Path, package: str, extra: str = "") -> Path:
    """Make a project with a package of workloads, commit it, and return its folder.

    `extra` is put below the well-behaved ones: another source.
    """
    suite = folder / package
    suite.mkdir(parents=True)
    for name in ("__init__.py", "small.py", "bad.py"):
        (suite / name).write_text((SUITES / "troubled" / name).read_text())
    (suite / "slow.py").write_text(SLOW)
    small = suite / "small.py"
    small.write_text(small.read_text().replace("* 2", "* 2" + extra))
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    with pytest.MonkeyPatch.context() as clock:  # equal content makes equal commits
        for who in ("AUTHOR", "COMMITTER"):
            clock.setenv(f"GIT_{who}_DATE", "2026-01-01T00:00:00Z")
        git(folder, "commit", "-q", "-m", "a")
    return folder


def wait_until(true, seconds: float = 30.0, what: str = "it"):
    """Return what `true` returns once that is true; fail if that takes too long."""
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.05)
    return found


class Fleet:
    """A scheduler and its workers, which end with the test."""

    def __init__(self, folder: Path, bare_scheduler: bool = False) -> None:
        self.folder = folder
        self.bare_scheduler = bare_scheduler  # it need not have the harness
        self.package = f"suite_{uuid.uuid4().hex[:8]}"  # this process imports those of all fleets
        self.project = project(folder / "project", self.package)
        self.results = self.project / "results"
        self.without = folder / "without"
        self.without.mkdir()
        (self.without / "harness.py").write_text(
            "raise ModuleNotFoundError(\"No module named 'harness'\")\n"
        )
        self.processes: list[subprocess.Popen[bytes]] = []
        self.threads = ThreadPoolExecutor()
        self.port = free_port()
        self.start_scheduler()

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        """Start a scheduler, always at the same port."""
        self.scheduler = self._start(
            "scheduler",
            *("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"),
            python=str(self.without) if self.bare_scheduler else "",
        )

    def worker(
        self,
        machine: str = "alpha",
        resources: str = "cpu=1",
        *options: str,
        cwd: Path | None = None,
        nanny: bool = False,
        python: str = "",
        **variables: str,
    ) -> subprocess.Popen[bytes]:
        """Start a worker of a machine called `machine`; see :meth:`wait_for`."""
        return self._start(
            f"worker-{machine}",
            *("worker", self.address, "--nthreads", "1", "--no-dashboard"),
            *("--nanny" if nanny else "--no-nanny", "--name", machine),
            *("--local-directory", str(self.folder / "dask")),
            *(("--resources", resources) if resources else ()),
            *options,
            cwd=cwd,
            python=python,
            **{"HARNESS_MACHINE": machine, "HARNESS_CLASS": machine, **variables},
        )

    def wait_for(self, *names: str) -> None:
        """Wait until workers of these names are there, and no others."""
        with Client(self.address, set_as_default=False) as client:

            def there() -> bool:
                found = client.scheduler_info(n_workers=-1)["workers"].values()
                return sorted(info["name"] for info in found) == sorted(names)

            wait_until(there, what=f"workers {names}")

    def workload(self, module: str, name: str):
        """Return a class of the fleet's own package."""
        file = self.project / self.package / f"{module}.py"
        return getattr(location.import_file(f"{self.package}.{module}", file), name)

    def sweep(self, workloads, effort="1x1", only=(), results=None, **options):
        """Measure on the fleet from this process; return the outcome, notes and progress."""
        results, folder, messages = results or self.results, self.project / self.package, []
        if only:  # else cases would wait for the class that measured them before
            (results / "placement.json").unlink(missing_ok=True)
        options = {"targets": None, "on_progress": messages.append, **options}
        with Client(self.address, set_as_default=False) as client:
            pool = DaskPool(client, only=only)
            return *sweep(pool, workloads, results, folder, effort, **options), messages

    def start(self, *arguments, **options):
        """Begin a :meth:`sweep` in a thread; return its future."""
        return self.threads.submit(self.sweep, *arguments, **options)

    def records(self):
        """Return the records of cases that are stored, of every machine."""
        return [
            record
            for file in record_files(self.results)
            for record in Store(file).read()
            if record.workload not in ("process", "reference")
        ]

    def client(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start `harness run --on` this fleet in the project's folder."""
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "harness", "run", *arguments),
                *("--on", self.address, "--benchmarks", self.package),
            ],
            cwd=self.project,
            env=environment(self.folder, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def run(self, *arguments: str, **variables: str) -> tuple[int, str, str]:
        """Run `harness run --on` this fleet to its end: exit code, output, errors."""
        process = self.client(*arguments, **variables)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def _start(self, name, *arguments, cwd=None, python="", **variables) -> subprocess.Popen[bytes]:
        """Start a program of Dask's; with `python`, its PYTHONPATH, afresh."""
        more = {**variables, "PYTHONPATH": python} if python else variables
        with (self.folder / f"{name}.log").open("ab") as log:
            process = (subprocess.Popen if python else forks.Python)(
                [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]],
                cwd=cwd or self.project,
                env=environment(self.folder, **more),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def kill(self, process: subprocess.Popen) -> None:
        """Kill a process and all that it started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self, process: subprocess.Popen) -> None:
        """End a process as a user would: a nanny that is killed leaves its semaphores behind."""
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        self.kill(process)

    def close(self) -> None:
        self.threads.shutdown(wait=False)
        for process in self.processes:
            if "--nanny" in process.args:
                self.stop(process)
        for process in self.processes:
            self.kill(process)
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()


def measuring(fleet: Fleet) -> list[int]:
    """Return the measuring processes of a fleet's workers, which are started or forked."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            known = process.name() == WORKER[-15:] or WORKER in process.cmdline()
            if known and process.cwd() == str(fleet.project):
                found.append(process.pid)
    return found
