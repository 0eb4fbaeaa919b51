"""What asv was asked: its arguments, which it does not tell a `setup_cache`, and its project."""

from __future__ import annotations

import contextlib
import io
import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.asv.metrics import case_metrics, process_metrics
from harness.declare.workload import Case, Workload, name_of


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
        from asv.commands import make_argparser

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
        from asv.config import Config

        for folder in folders:
            for name in names or ("asv.conf.json", "asv.conf.jsonc"):
                if (folder / name).is_file():
                    conf = Config.load(str(folder / name))
                    # A remote repository is no folder; the benchmarks' own then tells the commit.
                    repo = folder / conf.repo
                    return cls(folder / conf.results_dir, repo if repo.is_dir() else folder)
        return None
