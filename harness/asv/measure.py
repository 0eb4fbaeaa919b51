"""Measure for asv: what it was asked, which it does not tell a `setup_cache`, and the answers."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from asv.commands import make_argparser
from asv.config import Config

from harness.asv.answers import Answer, answers
from harness.asv.metrics import case_metrics, process_metrics
from harness.declare.workload import Case, Workload, name_of
from harness.engine.context import Context, Options
from harness.engine.sweep import sweep
from harness.records import environment
from harness.records.environment import env_name, machine_name
from harness.records.git import Commit, commit_of
from harness.stages import sampling


@dataclass(frozen=True)
class AsvCall:
    """What this run's `asv` was called with; asv tells a `setup_cache` nothing of it."""

    quick: bool = False
    dry_run: bool = False
    machine: str | None = None
    commit: str | None = None
    config: str | None = None
    bench: tuple[str, ...] = ()

    @classmethod
    def from_arguments(cls, arguments: list[str]) -> AsvCall | None:
        """Read what stands after `asv` on a command line; None if asv would not accept it."""
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                given = vars(make_argparser()[0].parse_args(arguments))
        except SystemExit:
            return None
        # asv's subcommands have different options, and `profile` has one benchmark, not several.
        bench = given.get("bench") or given.get("benchmark") or ()
        return cls(
            quick=bool(given.get("quick")),
            dry_run=bool(given.get("dry_run")),
            machine=given.get("machine"),
            commit=given.get("set_commit_hash"),
            config=given.get("config"),
            bench=(bench,) if isinstance(bench, str) else tuple(bench),
        )

    def selects(self, workload: type[Workload], case: Case) -> bool:
        """Tell whether `--bench` matches any reader of a case, as asv itself matches it."""
        name = name_of(workload)
        params = ", ".join(map(repr, case.coordinates.values()))
        readers = [f"{name}.track_{metric}({params})" for metric in case_metrics(workload)]
        readers += [f"{name}.track_{metric}" for metric in process_metrics(workload)]
        return not self.bench or any(
            re.search(pattern, reader) for pattern in self.bench for reader in readers
        )


def asv_call() -> tuple[AsvCall, psutil.Process | None]:
    """Find the `asv` that started this process among its ancestors, and read its arguments."""
    try:
        ancestors = psutil.Process().parents()
    except psutil.Error:
        ancestors = []
    for process in ancestors:
        try:
            line = process.cmdline()
        except psutil.Error:
            continue
        for position, word in enumerate(line):
            if Path(word).stem == "asv" and (call := AsvCall.from_arguments(line[position + 1 :])):
                return call, process
    return AsvCall(), None


def end_with(asv: psutil.Process) -> None:
    """End this process when `asv` is gone: killed, it leaves its children to measure on."""

    def watch() -> None:
        with contextlib.suppress(psutil.Error):
            while asv.is_running() and asv.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class Project:
    """The parts of an asv project that its `asv.conf.json` names."""

    results: Path
    repo: Path

    @classmethod
    def find(cls, folders: Iterable[Path], names: Sequence[str] = ()) -> Project | None:
        """Read the first configuration there is in `folders`."""
        for folder in folders:
            for name in names or ("asv.conf.json", "asv.conf.jsonc"):
                if (folder / name).is_file():
                    conf = Config.load(str(folder / name))
                    # A remote repository is no folder; the benchmarks' own then tells the commit.
                    repo = folder / conf.repo
                    return cls(folder / conf.results_dir, repo if repo.is_dir() else folder)
        return None


def measure(workload: type[Workload]) -> Answer:
    """Measure every case that asv asked for, unless that is done already; return the answers."""
    call, asv = asv_call()
    if asv is not None:
        end_with(asv)
    home = Path(inspect.getsourcefile(workload) or ".").resolve().parent
    # asv works in the folder of its configuration.
    folders = [home, *home.parents] if asv is None else [Path(asv.cwd())]
    names = [Path(call.config).name] if call.config else []
    project = Project.find(folders, names) or Project(home.parent / "results", home)
    with tempfile.TemporaryDirectory(prefix="harness-") as nowhere:
        results = Path(os.environ.get("HARNESS_RESULTS") or project.results)
        if call.dry_run:
            results = Path(nowhere)
        effort = os.environ.get("HARNESS_EFFORT") or ("quick" if call.quick else "default")
        options = Options(
            sampling.effort(effort),
            keep=functools.partial(call.selects, workload),
            fresh=_wanted("HARNESS_FRESH"),
            keep_programs=_wanted("HARNESS_KEEP_PROGRAMS"),
        )
        context = Context(
            results,
            call.machine or machine_name(),
            env_name(),
            _commit(call, project),
            environment.night(os.environ.get("HARNESS_NIGHT", "")),
        )
        return answers(workload, sweep([workload], context, options).records)


def _wanted(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


def _commit(call: AsvCall, project: Project) -> Commit:
    built = os.environ.get("ASV_COMMIT")  # set in the environments that asv makes
    head = commit_of(project.repo, exclude=project.results)
    found = commit_of(project.repo, built or call.commit or "HEAD")
    return head if found.hash == head.hash else found if found.hash else Commit(built or "")
