"""Nights of a throwaway asv project, in the environment that the tests run in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.nightly.state import Night, Nights
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

BARE = ("--without", "probe", "--without", "history", "--without", "report")
"""Only what a night cannot do without, and verdicts."""


def words(
    *arguments: str, night: str, effort: str = "1x1", bare: Sequence[str] = BARE
) -> list[str]:
    """Return the words after `harness` for a night in the interpreter that runs the tests."""
    return [
        *("nightly", "--jax", "installed", "--machine", MACHINE),
        *("--night", night, "--effort", effort, *bare, *arguments),
    ]


def begin(project: Project, *arguments: str, **options: Any) -> Command:
    """Begin a night."""
    typed = words(*arguments, **options)
    return Command(*typed, cwd=project.folder, environment=project.environment)


def nightly(project: Project, *arguments: str, code: int = 0, **options: Any) -> tuple[str, str]:
    """Do a night; return what it printed and said. Its exit code must be `code`."""
    done = finished(begin(project, *arguments, **options))
    assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


def state(project: Project, night: str) -> Night:
    """Return what a night has done."""
    found = Nights(project.results, MACHINE).read(night)
    assert found is not None
    return found


def outcome(project: Project, night: str) -> dict[str, Any]:
    """Return what must be equal however often a night was killed: rows and verdicts."""
    found = state(project, night)
    return {
        "exit code": found.exit_code,
        "steps": {name: step.status for name, step in found.steps.items()},
        "rows": [msgspec.to_builtins(e.rows) for e in found.environments],
        "judged": [(v.environment, v.against, sum(v.counts.values())) for v in found.verdicts],
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
