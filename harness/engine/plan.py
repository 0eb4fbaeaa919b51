"""What there is to do: which cases can be measured together, and by which key each is known."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import targets
from harness.declare.location import Source, locate
from harness.declare.source import METHOD_VERSION, comparison_version_of, version_of
from harness.declare.workload import (
    SEVERAL_DEVICES,
    Case,
    Workload,
    enumerate_cases,
    name_of,
    skip_reason,
)
from harness.engine.unit import CaseRef
from harness.records import environment
from harness.records.comparison import Comparison
from harness.records.schema import SCHEMA, digest
from harness.records.store import Store, store_path
from harness.sides import planning
from harness.sides.ceilings import Ceilings
from harness.stages import sampling
from harness.stages.injection import Injected
from harness.stages.scenarios import registry as scenarios


@dataclass(frozen=True)
class Host:
    """What of a machine enters keys and records, and what it has."""

    identity: str
    """See :func:`harness.records.environment.identity`."""
    versions: Mapping[str, str]
    """Of python, jax and jaxlib."""
    lacking: Callable[[targets.Target], str | None] = lambda target: target.lacking()
    """Why the machine does not have a target, or None if it seems to."""


def this_host() -> Host:
    """Return what this process finds around itself."""
    return Host(environment.identity(), environment.versions())


@dataclass(frozen=True)
class Context:
    """Where and of what a sweep is: the parts of a record that its caller knows."""

    results: Path
    machine: str
    env: str
    commit: environment.Commit
    night: str = ""
    """The night of a series; each measures anew what another may have measured of this commit."""
    host: Host = field(default_factory=this_host)
    """The machine that measures."""

    @property
    def store(self) -> Store:
        """The records file of this machine, commit and environment."""
        return Store(store_path(self.results, self.machine, self.commit.hash, self.env, self.night))


def local_context(
    results: Path, folder: Path, machine: str | None = None, night: str = ""
) -> Context:
    """Return the context of a sweep on this machine, of the commit that `folder` is at."""
    return Context(
        results,
        machine or environment.machine_name(),
        environment.env_name(),
        environment.commit_of(folder, exclude=results),
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
    fresh: bool = False
    """Measure again what has been measured before."""
    timeout_s: float | None = None
    """Overrides the workloads' own."""
    with_baselines: bool = False
    """Compare with the workloads' baselines as well."""
    keep_programs: bool = False
    """Keep the texts of what is built beside the records; see :mod:`harness.program.kept`."""
    memory_limit_bytes: int | None = None
    seed: int | None = None
    injected: Injected | None = None
    """Extra work inside the clock. Only `harness aa` asks for it; it needs `scenarios=("off",)`."""

    @property
    def protocol(self) -> str:
        """What one process does with a case; extra work makes another protocol of it."""
        extra = f" with {self.injected.mark}" if self.injected else ""
        return self.effort.protocol + extra


@dataclass
class Share:
    """The cases of one workload that one process can measure together."""

    workload: type[Workload]
    source: Source
    target: str
    cpu_devices: int
    scenario: str
    backend: str = ""
    """Who computes, in a comparison with a baseline."""
    threads: str = ""
    precision: str = ""
    """The one precision of its cases, where the process's environment decides on it."""
    refs: list[CaseRef] = field(default_factory=list)
    cases: dict[int, Case] = field(default_factory=dict)
    found: targets.Target | None = None
    """The target, where its name alone does not say what it is: a file of the user's does."""

    @property
    def place(self) -> targets.Target:
        """The target itself."""
        return self.found or targets.find(self.target)

    @functools.cached_property
    def version(self) -> str:
        """The version of the workload; in a comparison, that of its baselines as well."""
        return (comparison_version_of if self.backend else version_of)(self.workload)

    @property
    def comparison(self) -> Comparison | None:
        """What a record says of the side that it takes, before anything is known."""
        return Comparison(self.backend, self.threads) if self.backend else None

    @property
    def name(self) -> str:
        """The workload, where and in which scenario: what its processes are called after."""
        devices = f"x{self.cpu_devices}" if self.cpu_devices else ""
        scenario = f"/{self.scenario}" if self.scenario != "off" else ""
        arm = ",".join(filter(None, (self.backend, self.threads, self.precision)))
        return f"{name_of(self.workload)}@{self.target}{devices}{scenario}{arm and '/' + arm}"


class Plan:
    """The cases of a sweep in shares, and those that are skipped with the reason."""

    def __init__(
        self, workloads: Sequence[type[Workload]], context: Context, options: Options
    ) -> None:
        self.context = context
        self.options = options
        self.skipped: list[tuple[Share, CaseRef, Case, str]] = []
        self.shares: list[Share] = []
        for workload in workloads:
            self.shares += self._split(workload)
            if options.with_baselines:
                self.shares += self._compare(workload)
        if any(share.backend for share in self.shares):
            self.shares += self._compare(Ceilings)

    def key(self, workload: str, version: str, case: str, share: Share) -> str:
        """Return the identity of a measurement: of what, in what, and how."""
        commit = self.context.commit
        return digest(
            SCHEMA,
            workload,
            version,
            case,
            share.scenario,
            share.backend,
            share.threads,
            share.cpu_devices,
            share.place.digest,
            self.context.machine,
            self.context.env,
            self.context.host.identity,
            commit.hash,
            commit.dirty,
            self.options.protocol,
            *filter(None, [self.context.night]),
        )

    def instrument_key(self, instrument: str, share: Share) -> str:
        """Return the key for what a process measures of itself: `process`, or `reference`."""
        return self.key(instrument, str(METHOD_VERSION), share.target, share)

    def _split(self, workload: type[Workload]) -> Iterator[Share]:
        source = locate(workload)
        shares: dict[tuple[Any, ...], Share] = {}
        for target, scenario in itertools.product(
            self._targets(workload), self.options.scenarios or workload.scenarios
        ):
            lacking = self.context.host.lacking(target)
            if lacking and self.options.targets is None:
                continue
            lacking = lacking or scenarios.inapplicable(scenario, target)
            for index, case in enumerate(enumerate_cases(workload, [target.name])):
                if not self.options.keep(case):
                    continue
                several = case.transform in SEVERAL_DEVICES and target.name == "cpu"
                devices = targets.virtual_cpu_devices() if several else 0
                share = shares.setdefault(
                    (target.name, devices, scenario),
                    Share(workload, source, target.name, devices, scenario, found=target),
                )
                self._add(share, index, case, lacking)
        yield from (share for share in shares.values() if share.refs)

    def _compare(self, workload: type[Workload]) -> Iterator[Share]:
        """Yield the shares of a workload's comparison with its baseline."""
        source = locate(workload)
        for target in self._targets(workload):
            lacking = self.context.host.lacking(target)
            if lacking and self.options.targets is None:
                continue
            for arm in planning.arms(workload, target):
                share = Share(
                    workload,
                    source,
                    target.name,
                    cpu_devices=0,
                    scenario=arm.scenario,
                    backend=arm.backend,
                    threads=arm.threads,
                    precision=arm.precision,
                    found=target,
                )
                for index, case in enumerate(enumerate_cases(workload, [target.name])):
                    if self.options.keep(case) and planning.compared(case, arm):
                        self._add(share, index, case, lacking)
                if share.refs:
                    yield share

    def _add(self, share: Share, index: int, case: Case, lacking: str | None) -> None:
        """Put a case into a share, or among those that are skipped."""
        workload = share.workload
        name, injected = name_of(workload), self.options.injected
        ref = CaseRef(index, case.id, self.key(name, share.version, case.id, share))
        if injected and share.scenario == "off" and not share.backend:
            ref.extra_ns = injected.extra_ns(name, case.id)
        reason = lacking or skip_reason(workload, case)
        if reason and workload is Ceilings:
            return  # what it skips is no case that anybody asked for
        if reason:
            self.skipped.append((share, ref, case, reason))
        else:
            share.refs.append(ref)
            share.cases[index] = case

    def _targets(self, workload: type[Workload]) -> list[targets.Target]:
        """Return where a workload is to be measured: its own targets, or those asked for.

        A workload that names a family can be built for each of its compile-only devices.
        """
        asked = self.options.targets
        if asked is None:
            return targets.find_all(workload.targets)
        own = set(workload.targets)
        return [found for found in targets.find_all(asked) if {found.name, found.family} & own]
