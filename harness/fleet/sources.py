"""Where a workload that a client names is on this machine, and which version of it that is."""

from __future__ import annotations

import site
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.declare.location import Source, load
from harness.declare.source import comparison_version_of, version_of
from harness.declare.workload import Workload, WorkloadError
from harness.engine import channel
from harness.engine.child import ChildError, ChildTimeout, ask

IMPORT_S = 100.0
"""How long a worker's Python may take to import the workloads."""

Found = tuple[dict[str, str], dict[str, str]]
"""By name (:func:`name`): the version of each workload here; of the others, what is wrong."""


def here(source: Source) -> Source | None:
    """Return where `source` is on this machine, or None if it is not.

    In the folder that the worker was started in; else where the client has it, on a file system
    that both see; else among the installed packages.
    """
    if source.pickled:
        return source
    there = Path(source.file)
    inside = Path(*source.module.split("."))
    own = inside / there.name if there.name == "__init__.py" else inside.with_suffix(".py")
    installed = (Path(folder) / own for folder in site.getsitepackages())
    for file in (Path.cwd() / own, there, *installed):
        if file.is_file():
            return msgspec.structs.replace(source, file=str(file.resolve()))
    return None


def versions_of(workload: type[Workload]) -> str:
    """Return both versions of a workload's source: as it is measured, and as it is compared."""
    return f"{version_of(workload)}/{comparison_version_of(workload)}"


def name(source: Source) -> str:
    """Return what a workload is called between client and worker."""
    return f"{source.module}.{source.qualname}"


def find(wanted: Sequence[Source]) -> Found:
    """Return the version of each workload's source here, and of the others what is wrong.

    Found out in a process of its own: a worker lives long, and what it has imported would hide a
    file that has changed since.
    """
    if not wanted:
        return {}, {}
    try:
        versions, broken = ask(__name__, msgspec.to_builtins(wanted), None, IMPORT_S)
    except ChildTimeout:
        return {}, dict.fromkeys(map(name, wanted), f"importing it took over {IMPORT_S:g} s")
    except ChildError as error:
        return {}, dict.fromkeys(map(name, wanted), str(error))
    return versions, broken


def _look(wanted: list[Any]) -> Found:
    """In the process of its own: import the workloads."""
    versions: dict[str, str] = {}
    broken: dict[str, str] = {}
    for source in msgspec.convert(wanted, list[Source]):
        found = here(source)
        if found is None:
            broken[name(source)] = (
                f"there is no {source.module} in {Path.cwd()}, where the worker was started, and "
                f"no {source.file}. Start it in the folder that holds the workloads' package"
            )
            continue
        try:
            versions[name(source)] = "" if source.pickled else versions_of(load(found))
        except (Exception, SystemExit) as error:  # a user's module may raise anything when imported
            kind = "" if isinstance(error, WorkloadError) else f"{type(error).__name__}: "
            broken[name(source)] = f"{kind}{error}"
    return versions, broken


if __name__ == "__main__":
    channel.serve(_look)
