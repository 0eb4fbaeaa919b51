"""What there is to do: which cases can be measured together, and by which key each is known."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from harness import targets
from harness.baselines import registry as sides
from harness.baselines.ceilings import Ceilings
from harness.measure.context import Context, Options, SweepName, record_fields
from harness.measure.job import Job, JobCase
from harness.records.schema import FIRST_CALL, SCHEMA, digest
from harness.stages.registry import STAGES
from harness.stages.scenarios import registry as scenarios
from harness.workload.location import Source, locate
from harness.workload.source import METHOD_VERSION, comparison_version_of, version_of
from harness.workload.workload import (
    SEVERAL_DEVICES,
    Case,
    Workload,
    WorkloadError,
    enumerate_cases,
    name_of,
    skip_reason,
    where,
)

METHODS = digest(sorted((stage.name, stage.method) for stage in STAGES.values()))
"""How stages are taken: what was taken in another way is measured again."""


@dataclass
class Group:
    """The cases of one workload that one process can measure together."""

    workload: type[Workload]
    source: Source
    place: targets.Target
    cpu_devices: int
    scenario: str
    backend: str = ""
    """Who computes, in a comparison with a baseline."""
    threads: str = ""
    precision: str = ""
    """The one precision of its cases, where the process's environment decides on it."""
    first_call: bool = False
    """Whether its processes take only that; see :class:`Job`."""
    processes: dict[str, int] = field(default_factory=dict)
    """By scenario, how many processes that is for each of its cases."""
    refs: list[JobCase] = field(default_factory=list)

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.place.name

    @property
    def uses_jax(self) -> bool:
        """Whether JAX has the target's device in its processes."""
        return not self.backend or sides.SIDES[self.backend].uses_jax

    @functools.cached_property
    def version(self) -> str:
        """The version of the workload; in a comparison, that of its baselines as well."""
        return (comparison_version_of if self.backend else version_of)(self.workload)

    @property
    def name(self) -> str:
        """The workload, where and in which scenario: what its processes are called after."""
        devices = f"x{self.cpu_devices}" if self.cpu_devices else ""
        scenario = f"/{self.scenario}" if self.scenario != "off" else ""
        scenario = "/first calls" if self.first_call else scenario
        arm = ",".join(filter(None, (self.backend, self.threads, self.precision)))
        return f"{name_of(self.workload)}@{self.target}{devices}{scenario}{arm and '/' + arm}"

    def replicate(self, process: int) -> str:
        """Return what records say of which process measured them."""
        return f"{self.name}#{process}"


class Plan:
    """The cases of a sweep in groups, and those that are skipped with the reason."""

    def __init__(
        self,
        workloads: Sequence[type[Workload]],
        context: Context,
        options: Options,
        sweep: SweepName | None = None,
        programs: Path | None = None,
    ) -> None:
        self.context = context
        self.options = options
        self.sweep = sweep or SweepName.of(options)
        self.programs = programs
        """The folder for the texts of programs, where those are kept."""
        self.left_out: dict[str, str] = {}
        """Workloads of which nothing is to be measured or skipped, and why."""
        self.skipped: list[tuple[Group, JobCase, str]] = []
        self.visited: dict[str, str] = {}
        """The key of a first call to that of the same case where it is built."""
        self.groups: list[Group] = []
        _check_names(workloads)
        for workload in workloads:
            lacking = self._lacking(workload)
            if lacking:
                self.left_out[name_of(workload)] = lacking
                continue
            split = list(self._split(workload))
            self.groups += [*split, *self._alone(split)]
            if options.with_baselines:
                self.groups += self._compare(workload)
        if any(group.backend for group in self.groups):
            self.groups += self._compare(Ceilings)

    def key(self, workload: str, version: str, case: str, group: Group, scenario: str = "") -> str:
        """Return the identity of a measurement: of what, in what, and how.

        `scenario` is that of the case, where it is not that of the group.
        """
        commit = self.context.commit
        return digest(
            SCHEMA,
            METHODS,
            workload,
            version,
            case,
            scenario or group.scenario,
            group.backend,
            group.threads,
            group.cpu_devices,
            group.place.digest,
            self.context.machine,
            self.context.env,
            self.context.host.identity,
            commit.hash,
            commit.dirty,
            self.protocol(group),
            *filter(None, [self.context.night]),
        )

    def size(self, group: Group) -> int:
        """Return how many records of cases a group gets, where no process is added."""
        usual = self.options.effort.processes
        return sum(group.processes.get(ref.scenario, usual) for ref in group.refs)

    def protocol(self, group: Group) -> str:
        """Return what a process of a group does with a case."""
        return FIRST_CALL if group.first_call else self.options.protocol

    def instrument_key(self, instrument: str, group: Group) -> str:
        """Return the key for what a process measures of itself: `process`, or `reference`."""
        return self.key(instrument, str(METHOD_VERSION), group.target, group)

    def _lacking(self, workload: type[Workload]) -> str:
        """Return why a workload has no target to be measured on, "" where it has one."""
        places, own = self._targets(workload), ", ".join(workload.targets)
        if not places:
            return f"its targets are {own}, and not {', '.join(self.options.targets or ())}"
        if self.options.targets is None and all(map(self.context.host.lacking, places)):
            return f"this machine has none of its targets: {own}"
        return ""

    def _split(self, workload: type[Workload]) -> Iterator[Group]:
        source = locate(workload)
        groups: dict[tuple[Any, ...], Group] = {}
        for target, lacking in self._places(workload):
            for scenario in self.options.scenarios or workload.scenarios:
                reason = lacking or scenarios.inapplicable(scenario, target)
                for index, case in self._cases(workload, target):
                    several = case.transform in SEVERAL_DEVICES and target.name == "cpu"
                    devices = targets.virtual_cpu_devices() if several else 0
                    group = groups.setdefault(
                        (target.name, devices, scenario),
                        Group(workload, source, target, devices, scenario),
                    )
                    self._add(group, index, case, reason)
        yield from (group for group in groups.values() if group.refs)

    def _alone(self, groups: list[Group]) -> Iterator[Group]:
        """Yield groups of first calls of the cases of a workload's groups.

        The scenarios of a place are in one group, so that they take turns.
        """
        by_place: dict[tuple[str, int], Group] = {}
        for group in groups:
            wanted = 0 if group.place.compile_only else self._first_calls(group)
            if not wanted:
                continue
            alone = replace(group, scenario="off", first_call=True, processes={}, refs=[])
            own = by_place.setdefault((group.target, group.cpu_devices), alone)
            own.processes[group.scenario] = wanted
            for ref in group.refs:
                name = name_of(group.workload)
                key = self.key(name, group.version, ref.id, own, group.scenario)
                self.visited[key] = ref.key
                own.refs.append(
                    msgspec.structs.replace(ref, key=key, scenario=group.scenario, extra_ns={})
                )
        yield from by_place.values()

    def _first_calls(self, group: Group) -> int:
        """Return how many first calls a case of a group gets."""
        asked = (self.options.first_calls, group.workload.first_calls)
        if self.options.injected:
            return 0
        usual = scenarios.SCENARIOS[group.scenario].first_calls
        usual = min(self.options.effort.processes, usual)
        return next((one for one in asked if one is not None), usual)

    def _compare(self, workload: type[Workload]) -> Iterator[Group]:
        """Yield the groups of a workload's comparison with its baseline."""
        source = locate(workload)
        for target, lacking in self._places(workload):
            for arm in sides.arms(workload, target):
                group = Group(workload, source, target, cpu_devices=0, **arm._asdict())
                for index, case in self._cases(workload, target):
                    if sides.compared(case, arm):
                        self._add(group, index, case, lacking)
                if group.refs:
                    yield group

    def _add(self, group: Group, index: int, case: Case, lacking: str | None) -> None:
        """Put a case into a group, or among those that are skipped."""
        workload = group.workload
        name, injected = name_of(workload), self.options.injected
        key = self.key(name, group.version, case.id, group)
        ref = JobCase(
            index, case.id, key, case.label, dict(case.axes), case.transform, case.precision
        )
        if injected and group.scenario == "off" and not group.backend:
            ref.extra_ns = injected.extra_ns(name, case.id)
        reason = lacking or skip_reason(workload, case)
        if reason and workload is Ceilings:
            return  # what it skips is no case that anybody asked for
        if reason:
            self.skipped.append((group, ref, reason))
        else:
            group.refs.append(ref)

    def _places(self, workload: type[Workload]) -> Iterator[tuple[targets.Target, str | None]]:
        """Yield where a workload is to be measured or skipped, and why it must be skipped there."""
        for target in self._targets(workload):
            lacking = self.context.host.lacking(target)
            if not lacking or self.options.targets is not None:
                yield target, lacking

    def _cases(self, workload: type[Workload], place: targets.Target) -> Iterator[tuple[int, Case]]:
        """Yield the cases to measure, each with its position among all."""
        for index, case in enumerate(enumerate_cases(workload, [place.name])):
            if self.options.keep(case):
                yield index, case

    def _targets(self, workload: type[Workload]) -> list[targets.Target]:
        """Return where a workload is to be measured: its own targets, or those asked for.

        A workload that names a family can be built for each of its compile-only devices.
        """
        asked = self.options.targets
        if asked is None:
            return targets.find_all(workload.targets)
        own = set(workload.targets)
        return [one for one in targets.find_all(asked) if {one.name, one.family} & own]

    # Jobs

    def job(self, group: Group, cases: Sequence[JobCase], process: int) -> Job:
        """Return the job to measure `cases` of a group in process number `process`."""
        options, place = self.options, group.place
        replicate = group.replicate(process)
        return Job(
            source=group.source,
            target=place.name,
            description=place.description,
            # JAX is kept from a device that another library computes on.
            platforms=place.platforms if group.uses_jax else "cpu",
            environment=dict(place.environment),
            backend=group.backend,
            threads=group.threads,
            precision=group.precision,
            cpu_devices=group.cpu_devices,
            x64=group.workload.x64,
            scenario=group.scenario,
            first_call=group.first_call,
            cases=list(cases),
            passes=options.effort.passes,
            seed=random.Random(f"{self.sweep.seed}/{replicate}").getrandbits(31),
            group=group.name,
            process=process,
            process_key=self.instrument_key("process", group),
            reference_key=self.instrument_key("reference", group),
            programs=str(self.programs) if self.programs else "",
            base=self.base(group, replicate),
            inside=self.opens_up(group, process),
            timeout_s=options.timeout_s or group.workload.timeout_s,
            memory_limit_bytes=options.memory_limit_bytes,
        )

    def opens_up(self, group: Group, process: int) -> bool:
        """Return whether a process compiles its cases once more, under XLA's own events."""
        usual = process == 0 and not group.first_call and not group.backend
        scenario = scenarios.SCENARIOS[group.scenario]
        usual = usual and "compile" in scenario.steps and scenario.artefact is None
        return self.options.inside and usual

    def base(self, group: Group, replicate: str) -> dict[str, Any]:
        """Return the fields that all records of a group's process have alike."""
        return {
            **record_fields(self.context, self.options, self.sweep),
            "replicate": replicate,
            "workload": name_of(group.workload),
            "version": group.version,
            "static": list(group.workload.static),
            "target": group.target,
            "scenario": group.scenario,
            "protocol": self.protocol(group),
        }


def _check_names(workloads: Sequence[type[Workload]]) -> None:
    """Raise WorkloadError where two classes have one name: their records would be one row."""
    named: dict[str, type[Workload]] = {}
    for workload in workloads:
        other = named.setdefault(name_of(workload), workload)
        if other is not workload:
            raise WorkloadError(
                f"Two workloads are called {name_of(workload)}: {where(other)} and "
                f"{where(workload)}. Records tell workloads by their names: rename one class or "
                "its module, or measure them in two sweeps with two folders of results."
            )
