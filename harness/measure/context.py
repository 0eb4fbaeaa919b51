"""Where, of what and how a sweep measures: what its caller decides, and what it is called."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from harness import targets
from harness.measure import containment
from harness.measure.lock import waits
from harness.records import environment
from harness.records.git import Commit, commit_of
from harness.records.schema import INSTRUMENTS, SCHEMA, Record, digest, to_raw
from harness.records.store import Store, store_path
from harness.stages import sampling
from harness.stages.injection import Injected
from harness.workload import code
from harness.workload.workload import Case


@dataclass(frozen=True)
class Host:
    """What of a machine enters keys and records, and what it has."""

    identity: str
    """See :func:`harness.records.environment.identity`."""
    versions: Mapping[str, str]
    """Of python, jax and jaxlib."""
    lacking: Callable[[targets.Target], str | None] = lambda target: target.lacking()
    """Why the machine does not have a target, or None if it seems to."""
    other_code: Callable[[Mapping[str, str], Path], list[str]] = code.differences
    """What of the code that a record stands for is other code on the machine now."""


@dataclass(frozen=True)
class Context:
    """Where and of what a sweep is: the parts of a record that its caller knows."""

    results: Path
    machine: str
    env: str
    commit: Commit
    night: str = ""
    """The night of a series; each measures anew what another may have measured of this commit."""
    host: Host = field(default_factory=lambda: Host(environment.identity(), environment.versions()))
    """The machine that measures."""

    @property
    def store(self) -> Store:
        """The records file of this machine, commit and environment."""
        return Store(store_path(self.results, self.machine, self.commit.hash, self.env, self.night))


def local_context(
    results: Path, folder: Path, machine: str | None = None, night: str = ""
) -> Context:
    """Return the context of a sweep on this machine, of the commit that `folder` is at."""
    containment.need()
    return Context(
        results,
        machine or environment.machine_name(),
        environment.env_name(),
        commit_of(folder, exclude=results),
        night,
    )


@dataclass(frozen=True)
class Options:
    """How a sweep is run."""

    effort: sampling.Effort
    targets: tuple[str, ...] | None = None
    """Which targets to measure on; None means those that this machine has."""
    keep: Callable[[Case], bool] = lambda case: True
    """Which cases to measure."""
    scenarios: tuple[str, ...] | None = None
    """States of the persistent cache; None means each workload's own."""
    first_calls: int | None = None
    """How many first calls a case gets in each scenario, with a process for each; None leaves it to
    the workload, or to effort and scenario."""
    fresh: bool = False
    """Measure again what has been measured before."""
    since_ms: int = 0
    """Measure again what was measured before then, in milliseconds since 1970."""
    timeout_s: float | None = None
    """Overrides the workloads' own."""
    with_baselines: bool = False
    """Compare with the workloads' baselines as well."""
    keep_programs: bool = False
    """Keep the texts of what is built beside the records; see :mod:`harness.records.kept`."""
    inside: bool = False
    """Compile each case once more, in the first process, under XLA's own events."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Modules and workloads (`dense`, `dense.Mlp`) that cannot be used, and why; stored, so that
    they are missed."""
    memory_limit_bytes: int | None = None
    seed: int | None = None
    wait: bool = field(default_factory=waits)
    """Whether to wait while others measure on this machine, or to raise at once."""
    forked: bool = True
    """Whether measuring processes are forked where that is safe."""
    injected: Injected | None = None
    """Extra work inside the clock. Only `harness aa` asks for it; it needs `scenarios=("off",)`."""

    @property
    def protocol(self) -> str:
        """What one process does with a case; extra work makes another protocol of it."""
        return self.effort.protocol + (f" with {self.injected.mark}" if self.injected else "")


class SweepName(NamedTuple):
    """What a sweep is called, and what its orders of visits are drawn from."""

    name: str
    seed: int

    @classmethod
    def of(cls, options: Options) -> SweepName:
        """Name a sweep after now."""
        seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(31)
        return cls(f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{seed}", seed)


def record_fields(context: Context, options: Options, sweep: SweepName) -> dict[str, Any]:
    """Return what all records of a sweep have alike."""
    commit = context.commit
    return {
        "schema": SCHEMA,
        "machine": context.machine,
        "env": context.env,
        "commit": commit.hash,
        "commit_date_ms": commit.date_ms,
        "dirty": commit.dirty,
        "night": context.night,
        "effort": options.effort.name,
        "sweep": sweep.name,
        "seed": sweep.seed,
        **context.host.versions,
    }


HEALTHY = "it can be used again"


def broken_records(
    stored: Iterable[Record], context: Context, options: Options, sweep: SweepName
) -> Iterator[Record]:
    """Yield a record of each module or workload that is broken now, or was and is no more.

    It has no case, because nobody can say which there are: no transform, axes or version. `known`
    is what the store has.
    """
    broken = options.broken
    before = {
        record.workload: record.reason
        for record in stored
        if not record.transform and not record.version and record.workload not in INSTRUMENTS
    }
    for name, reason in {**dict.fromkeys(before, HEALTHY), **broken}.items():
        if before.get(name) == reason:
            continue
        own = (SCHEMA, "broken", name, context.machine, context.env, context.commit.hash)
        yield Record(
            key=digest(*own),
            replicate="",
            workload=name,
            version="",
            axes={},
            transform="",
            target="",
            scenario="off",
            status="failed" if name in broken else "skipped",
            reason=reason,
            protocol="",
            started_at_ms=time.time_ns() // 1_000_000,
            environment=to_raw({}),
            **record_fields(context, options, sweep),
        )
