"""Where a workload that a client names is on this machine, and which version of it that is."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

import msgspec

from harness.declare.location import Source, load
from harness.declare.source import comparison_version_of, version_of
from harness.declare.workload import Workload, WorkloadError


class Found(msgspec.Struct):
    """What there is on this machine of the workloads that were asked for."""

    versions: dict[str, str] = msgspec.field(default_factory=dict)
    """By name: see :func:`version`."""
    broken: dict[str, str] = msgspec.field(default_factory=dict)
    """By name: why it cannot be used here."""


def here(source: Source) -> Source | None:
    """Return where `source` is on this machine, or None if it is not.

    In the folder that the worker was started in; else where the client has it, on a file system
    that both see; else among the installed packages.
    """
    if source.pickled:
        return source
    there = Path(source.file)
    parts = source.module.split(".")
    inside = Path(*parts, "__init__.py") if there.name == "__init__.py" else Path(*parts)
    own = inside if there.name == "__init__.py" else inside.with_suffix(".py")
    installed = (Path(folder) / own for folder in site.getsitepackages())
    for file in (Path.cwd() / own, there, *installed):
        if file.is_file():
            return msgspec.structs.replace(source, file=str(file.resolve()))
    return None


def version(source: Source) -> str:
    """Return both versions of a workload's source here: as measured, and as compared.

    A class that was sent has none: it is the one that is meant.

    Raises:
        WorkloadError: it is not here.
    """
    if source.pickled:
        return ""
    found = here(source)
    if found is None:
        raise WorkloadError(
            f"there is no {source.module} in {Path.cwd()}, where the worker was started, and no "
            f"{source.file}. Start it in the folder that holds the workloads' package"
        )
    return versions_of(load(found))


def versions_of(workload: type[Workload]) -> str:
    """Return what :func:`version` does, of a class that is loaded."""
    return f"{version_of(workload)}/{comparison_version_of(workload)}"


def name(source: Source) -> str:
    """Return what a workload is called between client and worker."""
    return f"{source.module}.{source.qualname}"


def main() -> None:
    """Read sources from standard input, and write what is :class:`Found` of them."""
    out = os.dup(1)
    os.dup2(2, 1)  # what a workload prints while it is imported must not be mistaken for ours
    found = Found()
    for source in msgspec.json.decode(sys.stdin.buffer.read(), type=list[Source]):
        try:
            found.versions[name(source)] = version(source)
        except WorkloadError as error:
            found.broken[name(source)] = str(error)
        except (Exception, SystemExit) as error:  # a user's module may raise anything when imported
            found.broken[name(source)] = f"{type(error).__name__}: {error}"
    with os.fdopen(out, "wb") as stream:
        stream.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
