"""What a worker says of itself: machine, environment, versions, targets, clock."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness import __version__, targets
from harness.declare.location import Source
from harness.fleet import machine, sources, spool
from harness.records import environment
from harness.records.git import Commit, commit_of
from harness.targets.host import host

IMPORT_S = 100.0
"""How long a worker's Python may take to import the workloads."""


class Question(msgspec.Struct):
    """What a client wants to know of a worker."""

    owner: str
    """Whose records the worker may still hold; see :mod:`harness.fleet.spool`."""
    sources: list[Source]
    """The workloads that are to be measured."""
    exclude: str = ""
    """The client's results, from the folder of the first of them: that they have changed is no
    change of what is measured."""


class Place(msgspec.Struct, frozen=True):
    """A worker, and the machine and environment that it measures in."""

    worker: str
    """The worker's address, or `host:pid` where it has none."""
    host: str
    """The machine, whatever it is called: what its system made up when it was started."""
    machine: str
    """What the machine is called in results."""
    env: str
    identity: str
    """See :func:`harness.records.environment.identity`."""
    harness: str
    versions: dict[str, str]
    hardware: dict[str, Any]
    """See :func:`harness.targets.host.host`."""
    accelerators: str
    """The kinds of GPU that the worker may use, as their driver names them; empty without any."""
    gpus: list[str]
    """Those GPUs, each by what no other one is called."""
    lacking: dict[str, str]
    """Target to the reason why the machine does not have it; empty where it seems to."""
    resources: dict[str, float]
    """What the worker was started with, by Dask's `--resources`; empty for other pools."""
    commit: str
    """That of the folder of the workloads; empty without git, or where all were sent."""
    dirty: str
    workloads: dict[str, str]
    """`module.qualname` to the version of its source here."""
    broken: dict[str, str]
    """`module.qualname` to the reason why it cannot be used here."""
    clock_ns: int
    """When the worker answered, by its own clock."""
    trouble: str = ""
    """Why records cannot be kept here; empty where they can."""

    @property
    def label(self) -> str:
        """The worker for people: its machine and its address."""
        return f"{self.machine} ({self.worker})"

    def devices(self, target: str) -> list[str]:
        """Return what a measurement on `target` has for itself: a CPU, or all GPUs it may use."""
        found = targets.TARGETS.get(target)
        if found is None or found.compile_only or found.family == "cpu":
            return [f"{self.host}/cpu"]
        if found.family == "gpu" and self.gpus:
            return [f"{self.host}/gpu/{gpu}" for gpu in self.gpus]
        return [f"{self.host}/{found.family}"]


class Speaker(msgspec.Struct):
    """What can be read of the :class:`Place` that any version of the harness sends."""

    harness: str


encode_question = msgspec.json.Encoder().encode
decode_question = msgspec.json.Decoder(Question).decode
encode_place = msgspec.json.Encoder().encode
decode_place = msgspec.json.Decoder(Place).decode
decode_speaker = msgspec.json.Decoder(Speaker).decode


def describe(
    question: bytes, address: str = "", resources: Mapping[str, float] | None = None
) -> bytes:
    """Answer a client's question about this worker; runs on the worker.

    `address` and `resources` are what Dask knows of it.
    """
    asked = decode_question(question)
    files = [sources.here(source) for source in asked.sources]
    folder = next((Path(found.file).parent for found in files if found and found.file), None)
    commit = Commit()
    if folder is not None:
        exclude = (folder / asked.exclude).resolve() if asked.exclude else None
        commit = commit_of(folder, exclude=exclude)
    versions = machine.versions()  # before the identity, which is made of them
    workloads, broken = _versions(asked.sources)
    mine = machine.visible_gpus()
    place = Place(
        worker=address or f"{platform.node()}:{os.getpid()}",
        host=_host(),
        machine=environment.machine_name(),
        env=environment.env_name(),
        identity=environment.identity(),
        harness=__version__,
        versions=versions,
        hardware=host(),
        accelerators="; ".join(sorted({gpu.kind for gpu in mine})),
        gpus=[gpu.id for gpu in mine],
        lacking={name: target.lacking() or "" for name, target in targets.TARGETS.items()},
        resources=dict(resources or {}),
        commit=commit.hash,
        dirty=commit.dirty,
        workloads=workloads,
        broken=broken,
        clock_ns=time.time_ns(),
        trouble=spool.trouble(asked.owner),
    )
    return encode_place(place)


@functools.cache
def _host() -> str:
    try:
        # Linux; all containers of a machine have it in common.
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return platform.node() or "localhost"


def _versions(wanted: Sequence[Source]) -> tuple[dict[str, str], dict[str, str]]:
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
        why = f"importing it took more than {IMPORT_S:g} s"
        return {}, {sources.name(source): why for source in wanted}
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"importing it ended Python with {done.returncode}"
        return {}, {sources.name(source): why for source in wanted}
    found = msgspec.json.decode(done.stdout, type=sources.Found)
    return found.versions, found.broken
