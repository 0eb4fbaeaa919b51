"""Where a workload that a client names is on this machine, and which version of it that is."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.declare.location import Source, load
from harness.declare.source import comparison_version_of, version_of
from harness.declare.workload import Workload, WorkloadError

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
    command = [sys.executable, "-m", "harness.fleet.sources"]
    asked = msgspec.json.encode(list(wanted))
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, timeout=IMPORT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {}, dict.fromkeys(map(name, wanted), f"importing it took over {IMPORT_S:g} s")
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"importing it ended Python with {done.returncode}"
        return {}, dict.fromkeys(map(name, wanted), why)
    found: Found = msgspec.json.decode(done.stdout, type=Found)
    return found


def main() -> None:
    """Read sources from standard input, and write what is :data:`Found` of them."""
    out = os.dup(1)
    os.dup2(2, 1)  # what a workload prints while it is imported must not be mistaken for ours
    versions: dict[str, str] = {}
    broken: dict[str, str] = {}
    for source in msgspec.json.decode(sys.stdin.buffer.read(), type=list[Source]):
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
    with os.fdopen(out, "wb") as stream:
        stream.write(msgspec.json.encode((versions, broken)))


if __name__ == "__main__":
    main()
