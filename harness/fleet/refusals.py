"""Why a worker must not measure for a client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.fleet.place import Place
from harness.records import environment
from harness.records.git import Commit


def unfit(place: Place, commit: Commit, versions: Mapping[str, str], sent: bool) -> str:
    """Return why a worker must not measure for this client, with both versions, or nothing.

    Args:
        place: what the worker says of itself.
        commit: what is measured, as far as the client knows.
        versions: of each workload's source here, by its name.
        sent: whether a class without a file is among the workloads; it is sent as a pickle.
    """
    here = environment.versions()
    for name in ("jax", "jaxlib", *(["python"] if sent else [])):
        if place.versions[name] != here[name]:
            return (
                f"has {name} {place.versions[name] or 'not at all'}, and here it is "
                f"{here[name] or 'not installed'}"
            )
    for name, version in versions.items():
        if name in place.broken:
            return f"cannot use {name}: {place.broken[name]}"
        if place.workloads[name] != version:
            return f"has {name} in version {place.workloads[name]}, and here it is {version}"
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


def unlike(place: Place, others: Mapping[str, Place]) -> str:
    """Say of which other worker a worker has the name, though it is on an unlike machine.

    Equal machines may share a name: they stand for each other.
    """
    for label, other in others.items():
        if other.machine == place.machine and other.host != place.host:
            both = {name: (mine, other.hardware[name]) for name, mine in place.hardware.items()}
            text = "; ".join(f"{name}: {a}, not {b}" for name, (a, b) in both.items() if a != b)
            if text:
                return (
                    f"has the name of {label}, which is an unlike machine ({text}): their results "
                    "would be mixed. Set HARNESS_MACHINE to a name of its own where one of them is "
                    "started"
                )
    return ""
