"""What a worker says of itself, and why a client must not use it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness import targets
from harness.declare.location import Source
from harness.fleet import machine, shared, sources
from harness.records import environment
from harness.records.git import Commit, commit_of
from harness.records.store import is_plain


class Question(msgspec.Struct, kw_only=True):
    """What a client asks a worker."""

    sources: list[Source]
    """The workloads that are to be measured."""
    exclude: str = ""
    """The client's results, from the folder of the first of them: that they have changed is no
    change of what is measured."""
    store: str = ""
    """Where records are to go; see :func:`harness.fleet.shared.put`."""


class Place(msgspec.Struct, kw_only=True):
    """The machine and the environment that a worker measures in."""

    host: str
    """See :func:`harness.fleet.machine.host`."""
    machine: str
    """What the machine itself is called."""
    kind: str
    """What its class is called; see :func:`harness.fleet.machine.kind`."""
    env: str
    identity: str
    """See :func:`harness.records.environment.identity`."""
    versions: dict[str, str]
    gpus: list[str]
    """The GPUs that the worker may use, each by what no other one is called."""
    lacking: dict[str, str]
    """Target to the reason why the machine does not have it; empty where it seems to."""
    commit: str
    """That of the folder of the workloads; empty without git, or where all were sent."""
    dirty: str
    workloads: dict[str, str]
    """`module.qualname` to the version of its source here."""
    broken: dict[str, str]
    """`module.qualname` to the reason why it cannot be used here."""
    trouble: str
    """Why records cannot be put into the store from here; empty where they can."""

    def devices(self, target: str) -> list[str]:
        """Return what a measurement on `target` has for itself: a CPU, or all GPUs it may use."""
        found = targets.TARGETS.get(target)
        if found is None or found.compile_only or found.family == "cpu":
            return [f"{self.host}/cpu"]
        if found.family == "gpu" and self.gpus:
            return [f"{self.host}/gpu/{gpu}" for gpu in self.gpus]
        return [f"{self.host}/{found.family}"]


def answer(question: bytes) -> bytes:
    """Answer an encoded :class:`Question` with a :class:`Place`: what the worker is it runs in."""
    asked = msgspec.msgpack.decode(question, type=Question)
    machine.undo_nanny()
    wanted = asked.sources
    files = [sources.here(source) for source in wanted]
    folder = next((Path(found.file).parent for found in files if found and found.file), None)
    commit = Commit()
    if folder is not None:
        exclude = (folder / asked.exclude).resolve() if asked.exclude else None
        commit = commit_of(folder, exclude=exclude)
    versions = machine.versions()  # before the identity, which is made of them
    workloads, broken = sources.find(wanted)
    found = Place(
        host=machine.host(),
        machine=environment.machine_name(),
        kind=machine.kind(),
        env=environment.env_name(),
        identity=environment.identity(),
        versions=versions,
        gpus=list(machine.visible_gpus()),
        lacking={name: target.lacking() or "" for name, target in targets.TARGETS.items()},
        commit=commit.hash,
        dirty=commit.dirty,
        workloads=workloads,
        broken=broken,
        trouble=shared.trouble(asked.store) if asked.store else "",
    )
    return msgspec.msgpack.encode(found)


def unfit(place: Place, commit: Commit, versions: Mapping[str, str], sent: bool) -> str:
    """Return why a worker must not measure for this client, with both versions, or nothing.

    `versions` are of each workload's source here; `sent`: a class without a file is among the
    workloads, and comes as a pickle.
    """
    here = environment.versions()
    for name in ("jax", "jaxlib", *(["python"] if sent else [])):
        there = place.versions.get(name)
        if there != here[name]:
            return (
                f"has {name} {there or 'not at all'}, and here it is "
                f"{here[name] or 'not installed'}"
            )
    for name, version in versions.items():
        if name in place.broken:
            return f"cannot use {name}: {place.broken[name]}"
        there = place.workloads.get(name)
        if there != version:
            return f"has {name} in version {there}, and here it is {version}"
    if place.commit and commit.hash and place.commit != commit.hash:
        return f"is at commit {place.commit[:8]}, and here it is {commit.hash[:8]}"
    if place.commit and place.dirty != commit.dirty:
        return (
            f"has {_changes(place.dirty)} since commit {place.commit[:8]}, and here there are "
            f"{_changes(commit.dirty)}"
        )
    for variable, name in (("MACHINE", place.machine), ("CLASS", place.kind)):
        if not is_plain(name):
            return (
                f"calls its machine {name!r}, which cannot name a folder of the results; set "
                f"HARNESS_{variable} to a name without slashes where it is started"
            )
    if not is_plain(place.env):
        return f"calls its environment {place.env!r}, which cannot be part of a file's name"
    return place.trouble and f"cannot put records into the store: {place.trouble}"


def _changes(dirty: str) -> str:
    return f"uncommitted changes ({dirty})" if dirty else "no uncommitted changes"
