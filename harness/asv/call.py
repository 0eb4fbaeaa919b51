"""What this run's `asv` was called with, which it does not tell a `setup_cache`."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

import psutil
from asv.commands import make_argparser

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
