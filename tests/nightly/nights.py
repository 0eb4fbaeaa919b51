"""Nights of a throwaway project, in the environment that the tests run in."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.records import json_file
from harness.records.nights import NightSummary
from harness.records.schema import Problems, read_file
from harness.records.store import record_files
from tests.asv.project import MACHINE, Project
from tests.forks import Command, finished

TINY = """
from harness import Workload, spec


class Scale(Workload):
    targets = ("cpu",)
    process_stages = False

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return 2 * x
"""
"""One workload of one case: a night of it takes seconds."""


def words(*arguments: str, night: str, effort: str = "1x1") -> list[str]:
    """Return the words after `harness` for a night."""
    return ["nightly", "--machine", MACHINE, "--night", night, "--effort", effort, *arguments]


def begin(project: Project, *arguments: str, **options: Any) -> Command:
    """Begin a night."""
    typed = words(*arguments, **options)
    return Command(*typed, cwd=project.folder, environment=project.environment)


def nightly(project: Project, *arguments: str, code: int = 0, **options: Any) -> tuple[str, str]:
    """Do a night; return its standard output and standard error. Its exit code must be `code`."""
    done = finished(begin(project, *arguments, **options))
    assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


def summary(project: Project, night: str) -> NightSummary:
    """Return the summary of a finished night."""
    folder = project.results / MACHINE / "nights" / night
    return json_file.read(folder / "summary.json5", NightSummary)


def outcome(project: Project, night: str) -> dict[str, Any]:
    """Return what must be equal however often a night was killed: rows, verdicts and records."""
    return {
        "measured": [
            {
                **msgspec.to_builtins(one),
                **{"records": "", "verdict": 0, "counts": sum(one.counts.values())},
            }
            for one in summary(project, night).measured
        ],
        "records": keys(project, night),
    }


def keys(project: Project, night: str) -> set[tuple[str, str]]:
    """Return the key and the number of the replicate of every record of a night."""
    problems = Problems()
    return {
        (record.key, record.replicate.rpartition("#")[2])
        for file in record_files(project.results)
        for record in read_file(file, problems)
        if record.night == night
    }
