"""Which workers a sweep can use, and what to say where none is left."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness import __version__
from harness.fleet import sources
from harness.records import environment

if TYPE_CHECKING:
    from harness.declare.location import Source
    from harness.declare.workload import Workload
    from harness.fleet.place import Place
    from harness.fleet.pool import Pool
    from harness.records.git import Commit

CLOCK_S = 60
"""A worker whose clock is further off than this is said to be, and its times are corrected."""

MEMORY = 0.05
"""Group by which the memory of equal machines may differ; so it is where results are compared."""


def expected(workloads: Sequence[type[Workload]], found: Sequence[Source]) -> dict[str, str]:
    """Return the version of each workload's source here, by its name."""
    return {
        sources.name(source): "" if source.pickled else sources.versions_of(workload)
        for workload, source in zip(workloads, found, strict=True)
    }


def unfit(place: Place, commit: Commit, versions: Mapping[str, str], sent: bool) -> str:
    """Return why a worker must not measure for this client, with both versions, or nothing.

    Args:
        place: what the worker says of itself.
        commit: what is measured, as far as the client knows.
        versions: from :func:`expected`.
        sent: whether a class without a file is among the workloads; it is sent as a pickle.
    """
    if place.harness != __version__:
        return f"has harness {place.harness}, and this is harness {__version__}"
    here = environment.versions()
    for name in ("jax", "jaxlib", *(["python"] if sent else [])):
        if place.versions.get(name) != here[name]:
            return (
                f"has {name} {place.versions.get(name) or 'not at all'}, and here it is "
                f"{here[name] or 'not installed'}"
            )
    for name, version in versions.items():
        if name in place.broken:
            return f"cannot use {name}: {place.broken[name]}"
        found = place.workloads.get(name, "no answer")
        if found != version:
            return f"has {name} in version {found}, and here it is {version}"
    if place.commit and commit.hash and place.commit != commit.hash:
        return f"is at commit {place.commit[:8]}, and here it is {commit.hash[:8]}"
    if place.commit and place.dirty != commit.dirty:
        return (
            f"has {_changes(place.dirty)} since commit {place.commit[:8]}, and here there are "
            f"{_changes(commit.dirty)}"
        )
    if place.machine == ".." or Path(place.machine).name != place.machine:
        return (
            f"calls its machine {place.machine!r}, which cannot name a folder of the results; set "
            "HARNESS_MACHINE to a name without slashes where it is started"
        )
    return place.trouble and f"cannot keep records: {place.trouble}"


def _changes(dirty: str) -> str:
    return f"uncommitted changes ({dirty})" if dirty else "no uncommitted changes"


def unlike(place: Place, others: Iterable[Place]) -> str:
    """Say which of other workers is an unlike machine under the name of this one, or nothing.

    Equal machines may share a name: they stand for each other.
    """
    for other in others:
        if other.machine != place.machine:
            continue
        mine, theirs = _hardware(place), _hardware(other)
        if place.host == other.host:  # its workers may have different accelerators
            mine["accelerators"] = theirs["accelerators"] = ""
        differing = [name for name in mine if not _equal(name, mine[name], theirs[name])]
        if differing:
            text = "; ".join(f"{name}: {theirs[name]} and {mine[name]}" for name in differing)
            return (
                f"The workers {other.worker} and {place.worker} are unlike machines that are both "
                f"called {place.machine!r} ({text}). Their results would be mixed. Set "
                "HARNESS_MACHINE to a name of its own where one of them is started."
            )
    return ""


def _hardware(place: Place) -> dict[str, object]:
    found: dict[str, object] = {
        name: place.hardware.get(name) for name in ("arch", "cpu", "cores", "ram_bytes")
    }
    return {**found, "accelerators": place.accelerators}


def _equal(name: str, mine: object, theirs: object) -> bool:
    """Tell whether something is the same of two machines, kernels keeping more or less memory."""
    if name == "ram_bytes" and isinstance(mine, int) and isinstance(theirs, int):
        return math.isclose(mine, theirs, rel_tol=MEMORY)
    return mine == theirs


def nobody(
    pool: Pool, places: Collection[Place], refused: Mapping[str, str], target: str = ""
) -> str:
    """Say why no worker of a pool can measure, and what to do.

    `places` holds what workers said of themselves, `refused` why those that are not used are not.
    """
    start = f"dask worker {pool.name} --nthreads 1 --resources {target or 'cpu'}=1"
    if not places and not refused:
        return f"{pool.name} has no workers. Start one on each machine, for example: {start}"
    labels = {place.worker: place.label for place in places}
    lines = [f"{labels.get(worker, worker)} {why}" for worker, why in refused.items()]
    usable = [place for place in places if place.worker not in refused]
    for place in usable:
        has = ", ".join(f"{name}={n:g}" for name, n in place.resources.items()) or "none"
        reason = place.lacking.get(target, "")
        said = f"has the resources: {has}" if pool.by_resources else "answers"
        lines.append(f"{place.label} {said}{reason and '; ' + reason}")
    wanted = f"the resource {target}=1" if target else "a target of the workloads as a resource"
    head = f"has {wanted}" if usable and pool.by_resources else "fits"
    text = f"No worker of {pool.name} {head}:\n  " + "\n  ".join(lines)
    if pool.by_resources:
        text += f"\nStart one where it can be measured: {start}"
    return text


def correction_ms(offset_ns: int) -> int:
    """Return by how much the times of a worker's records are to be corrected: mostly 0.

    `offset_ns` is how much its clock is ahead of this machine's.
    """
    return offset_ns // 1_000_000 if abs(offset_ns) > CLOCK_S * 1e9 else 0


def can(place: Place, target: str, pool: Pool) -> bool:
    """Tell whether a worker is there for a target, and has it."""
    if pool.by_resources and place.resources.get(target, 0) < 1:
        return False
    return not place.lacking.get(target, "")
