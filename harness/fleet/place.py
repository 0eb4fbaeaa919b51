"""What a worker says of itself: machine, environment, versions, targets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness import targets
from harness.declare.location import Source
from harness.fleet import machine, sources, spool
from harness.records import environment
from harness.records.git import Commit, commit_of
from harness.targets.host import host


class Place(msgspec.Struct, frozen=True):
    """The machine and the environment that a worker measures in."""

    host: str
    """See :func:`harness.fleet.machine.host`."""
    machine: str
    """What the machine is called in results."""
    env: str
    identity: str
    """See :func:`harness.records.environment.identity`."""
    versions: dict[str, str]
    hardware: dict[str, str | int]
    """What machines of one name have in common."""
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
    """Why records cannot be kept here; empty where they can."""

    def devices(self, target: str) -> list[str]:
        """Return what a measurement on `target` has for itself: a CPU, or all GPUs it may use."""
        found = targets.TARGETS.get(target)
        if found is None or found.compile_only or found.family == "cpu":
            return [f"{self.host}/cpu"]
        if found.family == "gpu" and self.gpus:
            return [f"{self.host}/gpu/{gpu}" for gpu in self.gpus]
        return [f"{self.host}/{found.family}"]


def describe(owner: str, wanted: Sequence[Source], exclude: str) -> Place:
    """Say what the worker is that this runs in.

    Args:
        owner: whose records it is to keep; see :mod:`harness.fleet.spool`.
        wanted: the workloads that are to be measured.
        exclude: the client's results, from the folder of the first of them: that they have changed
            is no change of what is measured.
    """
    machine.undo_nanny()
    files = [sources.here(source) for source in wanted]
    folder = next((Path(found.file).parent for found in files if found and found.file), None)
    commit = Commit()
    if folder is not None:
        commit = commit_of(folder, exclude=(folder / exclude).resolve() if exclude else None)
    versions = machine.versions()  # before the identity, which is made of them
    workloads, broken = sources.find(wanted)
    gpus = machine.visible_gpus()
    kinds = "; ".join(sorted(set(gpus.values())))
    return Place(
        host=machine.host(),
        machine=environment.machine_name(),
        env=environment.env_name(),
        identity=environment.identity(),
        versions=versions,
        hardware={name: host()[name] for name in ("arch", "cpu", "cores")} | {"GPUs": kinds},
        gpus=list(gpus),
        lacking={name: target.lacking() or "" for name, target in targets.TARGETS.items()},
        commit=commit.hash,
        dirty=commit.dirty,
        workloads=workloads,
        broken=broken,
        trouble=spool.trouble(owner),
    )
