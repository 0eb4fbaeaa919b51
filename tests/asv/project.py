"""A throwaway asv project: a git repository, a configuration, and the home of its user."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import harness
from harness.records.schema import Problems, Record
from harness.records.store import Store, record_files
from harness.stages.registry import values_ns

MACHINE = "tested"
PYTHON = ".".join(map(str, sys.version_info[:2]))
JAX = metadata.version("jax")
ENV = f"existing-py{PYTHON}-jax{JAX}"
"""What asv should call the environment that the tests run in."""

CONFIGURATION: dict[str, Any] = {
    "version": 1,
    "project": "throwaway",
    "repo": ".",
    "dvcs": "git",
    "branches": ["HEAD"],
    "environment_type": "existing",
    "plugins": [".harness.asv.environment"],
    "launch_method": "forkserver",
    "default_benchmark_timeout": 600,
    "results_dir": "results",
    "html_dir": ".asv/html",
    "env_dir": ".asv/env",
}

INIT = """
from harness.asv import suite

suite.install()
"""

SCALE = """
from harness import Workload, spec


class Scale(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return 2 * x
"""
"""A module with one workload of one case."""


class Project:
    """An asv project below `folder`; every command sees only the home that stands beside it."""

    def __init__(self, folder: Path, modules: Mapping[str, str], **configuration: Any) -> None:
        self.folder = folder / "project"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.configure("asv.conf.json", **configuration)
        self.write("benchmarks/__init__.py", INIT)
        for name, text in modules.items():
            self.write(f"benchmarks/{name}.py", text)
        self.write(".gitignore", "results\n.asv\n__pycache__\n")
        self.know_machine(MACHINE)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def environment(self) -> dict[str, str]:
        """The caller's environment without what would steer asv, git or the harness."""
        steering = ("HARNESS_", "GIT_", "ASV_", "JAX_", "XLA_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(steering)}
        here = str(Path(harness.__file__).parents[1])  # what these tests test, installed or not
        identity = {"NAME": "tester", "EMAIL": "tester@example.com"}
        return {
            **kept,
            "HARNESS_LOCKS": os.environ.get("HARNESS_LOCKS", ""),  # others may measure beside
            "PYTHONPATH": here,
            "ASV_PYTHONPATH": here,
            "HOME": str(self.home),
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{f"GIT_AUTHOR_{key}": value for key, value in identity.items()},
            **{f"GIT_COMMITTER_{key}": value for key, value in identity.items()},
        }

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")

    def configure(self, name: str, **configuration: Any) -> None:
        self.write(name, json.dumps({**CONFIGURATION, **configuration}, indent=4))

    def know_machine(self, *names: str) -> None:
        about = {key: "1" for key in ("os", "arch", "cpu", "num_cpu", "ram")}
        known = {name: {**about, "machine": name} for name in names}
        (self.home / ".asv-machine.json").write_text(json.dumps({**known, "version": 1}))

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder), *arguments]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "A state of the project")
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def start(
        self, *arguments: str, asv: list[str] | None = None, **variables: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*(asv or [sys.executable, "-m", "asv"]), *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def asv(
        self,
        *arguments: str,
        asv: list[str] | None = None,
        code: int = 0,
        timeout_s: float = 280,
        **variables: str,
    ) -> str:
        """Run asv and return what it said; its exit code must be `code`."""
        process = self.start(*arguments, asv=asv, **variables)
        said, _ = process.communicate(timeout=timeout_s)
        assert process.returncode == code, f"asv ended with {process.returncode}:\n{said}"
        return said

    def run(self, *arguments: str, **options: Any) -> str:
        """Run the benchmarks, and file the results under HEAD."""
        return self.asv("run", "-E", "existing", "--set-commit-hash", "HEAD", *arguments, **options)

    # What came of it

    def result_file(self, machine: str = MACHINE, env: str = ENV, commit: str = "") -> Path:
        return self.results / machine / f"{(commit or self.head)[:8]}-{env}.json"

    def result(self, name: str, **where: str) -> dict[str, Any]:
        """Return asv's result of one benchmark: columns by name, and `by_case`."""
        stored = json.loads(self.result_file(**where).read_text())
        packed = stored["results"][name]
        found = dict(itertools.zip_longest(stored["result_columns"], packed))
        cases = list(itertools.product(*found["params"]))
        found["result"] = found["result"] or [None] * len(cases)  # all failed: asv stores no list
        found["by_case"] = dict(zip(cases, found["result"], strict=True))
        return found

    def names(self, **where: str) -> set[str]:
        return set(json.loads(self.result_file(**where).read_text())["results"])

    def benchmarks(self) -> dict[str, Any]:
        known = json.loads((self.results / "benchmarks.json").read_text())
        return {name: about for name, about in known.items() if name != "version"}

    def records(self, workload: str | None = None) -> list[Record]:
        """Return the records that count, or those of one workload; all lines must be readable."""
        problems = Problems()
        found = [r for file in record_files(self.results) for r in Store(file).read(problems)]
        assert not problems, problems.summary()
        return [r for r in found if workload in (None, r.workload)]

    def values_s(self, workload: str, stage: str) -> list[float]:
        """Return one value per process from the records, in seconds, in order of measuring."""
        found = [r for r in self.records(workload) if r.status == "ok"]
        return [values_ns(record.stages)[stage] / 1e9 for record in found]


class Installed(Project):
    """A project that asv installs into environments which it makes."""

    @property
    def environment(self) -> dict[str, str]:
        kept = super().environment
        for shadow in ("PYTHONPATH", "ASV_PYTHONPATH"):  # the wheel is to be measured
            kept.pop(shadow, None)
        # What the package installer knows (mirrors, downloads) is that of the real home.
        real = Path.home()
        kept.setdefault("XDG_CONFIG_HOME", str(real / ".config"))
        kept.setdefault("XDG_CACHE_HOME", str(real / ".cache"))
        kept["PIP_NO_COMPILE"] = "no"  # pip's word for yes: Python compiles what is used
        base = sys._base_executable  # type: ignore[attr-defined]
        kept["PATH"] = f"{Path(base).parent}:{kept['PATH']}"
        return kept


def copied(repository: Path, folder: Path, *folders: str) -> Path:
    """Copy what of the repository a wheel is made of, and some folders; in a worktree .git is a
    file."""
    folder.mkdir(parents=True)
    for file in repository.iterdir():
        if file.is_file() and file.name not in ("asv.conf.json", ".git"):
            shutil.copy(file, folder)
    for name in folders:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(repository / name, folder / name, ignore=ignored)
    return folder


def is_na(value: object) -> bool:
    """Tell whether asv shows a stored value as "n/a"; "failed" is stored as None."""
    return isinstance(value, float) and math.isnan(value)


def row(said: str, name: str) -> str:
    """Return what asv printed for one benchmark: its line and the table below."""
    rows = re.split(r"^(?=.*\S\.track_)", said, flags=re.MULTILINE)
    return next(row for row in rows if name in row.split())


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    """Wait until `condition()` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process the way an impatient user does."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()
