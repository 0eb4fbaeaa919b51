"""What there is to do: which cases can be measured together, and by which key each is known."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import environment, sampling, targets
from harness.records import SCHEMA, digest
from harness.source import METHOD_VERSION, version_of
from harness.store import Store, store_path
from harness.unit import CaseRef, Source, locate
from harness.workload import (
    SEVERAL_DEVICES,
    Case,
    Workload,
    enumerate_cases,
    name_of,
    skip_reason,
)


@dataclass(frozen=True)
class Context:
    """Where and of what a sweep is: the parts of a record that its caller knows."""

    results: Path
    machine: str
    env: str
    commit: environment.Commit

    @property
    def store(self) -> Store:
        """The records file of this machine, commit and environment."""
        return Store(store_path(self.results, self.machine, self.commit.hash, self.env))


def local_context(results: Path, folder: Path, machine: str | None = None) -> Context:
    """Return the context of a sweep on this machine, of the commit that `folder` is at."""
    return Context(
        results,
        machine or environment.machine_name(),
        environment.env_name(),
        environment.commit_of(folder, exclude=results),
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
    memory_limit_bytes: int | None = None
    seed: int | None = None


@dataclass
class Share:
    """The cases of one workload that one process can measure together."""

    workload: type[Workload]
    source: Source
    target: str
    cpu_devices: int
    scenario: str
    refs: list[CaseRef]
    cases: dict[int, Case]
    failures: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The workload, where and in which scenario: what its processes are called after."""
        devices = f"x{self.cpu_devices}" if self.cpu_devices else ""
        scenario = f"/{self.scenario}" if self.scenario != "off" else ""
        return f"{name_of(self.workload)}@{self.target}{devices}{scenario}"


class Plan:
    """The cases of a sweep in shares, and those that are skipped with the reason."""

    def __init__(
        self, workloads: Sequence[type[Workload]], context: Context, options: Options
    ) -> None:
        self.context = context
        self.options = options
        self._identity = environment.identity()
        self.skipped: list[tuple[Share, CaseRef, Case, str]] = []
        self.shares = [share for workload in workloads for share in self._split(workload)]

    def key(self, workload: str, version: str, case: str, devices: int, scenario: str) -> str:
        """Return the identity of a measurement: of what, in what, and how."""
        commit = self.context.commit
        return digest(
            SCHEMA,
            workload,
            version,
            case,
            scenario,
            devices,
            self.context.machine,
            self.context.env,
            self._identity,
            commit.hash,
            commit.dirty,
            self.options.effort.protocol,
        )

    def instrument_key(self, instrument: str, share: Share) -> str:
        """Return the key for what a process measures of itself: `process`, or `reference`."""
        return self.key(
            instrument, str(METHOD_VERSION), share.target, share.cpu_devices, share.scenario
        )

    def _split(self, workload: type[Workload]) -> Iterator[Share]:
        source = locate(workload)
        version = version_of(workload)
        shares: dict[tuple[str, int, str], Share] = {}
        chosen = self.options.scenarios or workload.scenarios
        points = itertools.product(chosen, enumerate(enumerate_cases(workload)))
        for scenario, (index, case) in points:
            asked = self.options.targets
            if not self.options.keep(case) or (asked is not None and case.target not in asked):
                continue
            lacking = targets.find(case.target).lacking()
            if lacking and asked is None:
                continue
            several = case.transform in SEVERAL_DEVICES and case.target == "cpu"
            devices = targets.virtual_cpu_devices() if several else 0
            share = shares.setdefault(
                (case.target, devices, scenario),
                Share(workload, source, case.target, devices, scenario, [], {}),
            )
            key = self.key(name_of(workload), version, case.id, devices, scenario)
            ref = CaseRef(index, case.id, key)
            reason = lacking or skip_reason(workload, case)
            if reason:
                self.skipped.append((share, ref, case, reason))
            else:
                share.refs.append(ref)
                share.cases[index] = case
        yield from (share for share in shares.values() if share.refs)
