"""What a worker says of itself and its machine, and why a client must not use it."""

from __future__ import annotations

import contextlib
import functools
import math
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil

from harness import targets
from harness.declare.location import Source
from harness.engine.lock import host
from harness.fleet import shared, sources
from harness.records import environment
from harness.records.git import Commit, commit_of
from harness.records.store import is_plain
from harness.targets import host as hardware


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
    """See :func:`harness.engine.lock.host`."""
    machine: str
    """What the machine itself is called."""
    kind: str
    """What its class is called; see :func:`kind`."""
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
    undo_nanny()
    wanted = asked.sources
    files = [sources.here(source) for source in wanted]
    folder = next((Path(found.file).parent for found in files if found and found.file), None)
    commit = Commit()
    if folder is not None:
        exclude = (folder / asked.exclude).resolve() if asked.exclude else None
        commit = commit_of(folder, exclude=exclude)
    found_versions = versions()  # before the identity, which is made of them
    workloads, broken = sources.find(wanted)
    found = Place(
        host=host(),
        machine=environment.machine_name(),
        kind=kind(),
        env=environment.env_name(),
        identity=environment.identity(),
        versions=found_versions,
        gpus=list(visible_gpus()),
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


@functools.cache
def visible_gpus() -> dict[str, str]:
    """Return the NVIDIA GPUs that this process may use: the id that no other GPU has, to its kind.

    Found without waking JAX or CUDA; the number of a GPU may be another's in another job. All of
    them where the driver does not know what CUDA_VISIBLE_DEVICES names, such as a part of a GPU.
    """
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES", "all").replace(" ", "")
    if wanted in ("", "-1"):
        return {}
    command = ["nvidia-smi", "--query-gpu=uuid,name", "--format=csv,noheader"]
    for chosen in ([f"--id={wanted}"] if wanted != "all" else [], []):
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # there may be no driver
            done = subprocess.run(
                [*command, *chosen], capture_output=True, text=True, timeout=30, check=True
            )
            lines = [line.partition(",") for line in done.stdout.splitlines()]
            return {id.strip(): kind.strip() for id, _, kind in lines if kind}
    return {}


def kind() -> str:
    """Return the name of this machine's class: HARNESS_CLASS, else its hardware."""
    found, given = hardware.host(), os.environ.get("HARNESS_CLASS")
    if given:
        return given
    gib = found["ram_bytes"] / 2**30
    step = 2.0 ** max(math.floor(math.log2(gib)) - 3, 0)  # a system keeps some of it to itself
    cpu = re.sub(r"\((R|TM)\)|\b(CPU|Processor)\b", " ", found["cpu"], flags=re.IGNORECASE)
    words = [cpu, f"{found['cores']} cores {math.ceil(gib / step) * step:g} GiB"]
    text = " ".join([*words, *sorted(set(visible_gpus().values()))])
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.").lower()


def versions() -> dict[str, str]:
    """Return what :func:`harness.records.environment.versions` does, also after an upgrade.

    A worker lives long, and packages may be upgraded under it: where the folders of packages have
    changed, all that records say of this machine is found out anew.
    """
    stamp = []
    for folder in sys.path:
        with contextlib.suppress(OSError):
            stamp.append(os.stat(folder).st_mtime_ns)
    return _versions(tuple(stamp))


@functools.lru_cache(maxsize=1)
def _versions(stamp: tuple[int, ...]) -> dict[str, str]:
    environment.surroundings.cache_clear()
    return environment.versions()


@functools.cache
def undo_nanny() -> None:
    """Take what Dask's nanny sets by default out of the environment of this process, its worker.

    It is meant for many tasks in one process. In processes that measure it would keep NumPy to one
    thread, make the C library give memory back all the time, and give all the same seed of Python's
    hashes. What the nanny was started with stays, and so does what Dask was configured to set.
    """
    if "from Nanny" not in multiprocessing.current_process().name:
        return
    with contextlib.suppress(psutil.Error, OSError):
        given = psutil.Process(os.getppid()).environ()
        for name in added_by_nanny(os.environ, given):
            del os.environ[name]


def added_by_nanny(found: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Return the variables of a worker that its nanny has added to what that was `given`."""
    dask = sys.modules["distributed.config"].defaults["distributed"]
    added = {
        **dask["nanny"]["pre-spawn-environ"],
        "PYTHONHASHSEED": 6640,  # the nanny's own (distributed 2026.8)
    }
    return [n for n, value in added.items() if found.get(n) == str(value) and n not in given]
