"""What one process is to measure of a workload, as plain data that another machine can be sent.

A `Unit` is what one process is told. An order is more: a process that does not
survive a case leaves the others to a next one, and a persistent cache has to be filled before it
can answer. Whoever carries the order out needs neither the plan nor the workload's class.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.declare.workload import name_of
from harness.engine.plan import Plan, Share
from harness.engine.unit import CaseRef, Unit
from harness.records.comparison import Comparison
from harness.records.schema import SCHEMA
from harness.sides.registry import SIDES


class NamedCase(msgspec.Struct, frozen=True):
    """What a record says of a case whose process cannot say it any more."""

    label: str
    axes: dict[str, Any]
    transform: str
    precision: str


class Order(msgspec.Struct):
    """The cases of one workload that one process is to measure, until each has a record."""

    share: str
    """What the processes of the workload's share are called after."""
    process: int
    unit: Unit
    """Without its cache folder: that is made where the order is carried out."""
    cases: dict[int, NamedCase]
    timeout_s: float
    """For one pass over one case."""
    memory_limit_bytes: int | None = None
    comparison: Comparison | None = None

    @property
    def refs(self) -> list[CaseRef]:
        """The cases to measure."""
        return self.unit.cases


class Writer:
    """Writes the orders of one sweep: one plan, one name, one seed."""

    def __init__(self, plan: Plan, name: str, seed: int, programs: Path | None = None) -> None:
        self.plan = plan
        self.name = name
        """Of the sweep."""
        self.seed = seed
        self.programs = programs
        """The folder for the texts of programs, where those are kept."""

    def order(self, share: Share, todo: Sequence[CaseRef], process: int) -> Order:
        """Return the order for the cases `todo` of a share in process number `process`."""
        options = self.plan.options
        target = share.place
        replicate = f"{share.name}#{process}"
        unit = Unit(
            source=share.source,
            target=target.name,
            description=target.description,
            # JAX is kept from the device that CuPy computes on.
            platforms=target.platforms
            if not share.backend or SIDES[share.backend].uses_jax
            else "cpu",
            environment=dict(target.environment),
            backend=share.backend,
            threads=share.threads,
            precision=share.precision,
            cpu_devices=share.cpu_devices,
            x64=share.workload.x64,
            cases=list(todo),
            passes=options.effort.passes,
            seed=random.Random(f"{self.seed}/{replicate}").getrandbits(31),
            process_key=self.plan.instrument_key("process", share),
            reference_key=self.plan.instrument_key("reference", share),
            scenario=share.scenario,
            programs=str(self.programs) if self.programs else "",
            base=self.base(share, replicate),
        )
        named = {
            ref.index: NamedCase(case.label, dict(case.axes), case.transform, case.precision)
            for ref in todo
            for case in [share.cases[ref.index]]
        }
        return Order(
            share.name,
            process,
            unit,
            named,
            options.timeout_s or share.workload.timeout_s,
            options.memory_limit_bytes,
            share.comparison,
        )

    def base(self, share: Share, replicate: str) -> dict[str, Any]:
        """Return the fields that all records of a share's process have alike."""
        context, options = self.plan.context, self.plan.options
        commit = context.commit
        return {
            "schema": SCHEMA,
            "replicate": replicate,
            "workload": name_of(share.workload),
            "version": share.version,
            "static": list(share.workload.static),
            "target": share.target,
            "scenario": share.scenario,
            "machine": context.machine,
            "env": context.env,
            "commit": commit.hash,
            "commit_date_ms": commit.date_ms,
            "dirty": commit.dirty,
            "night": context.night,
            "protocol": options.protocol,
            "effort": options.effort.name,
            "sweep": self.name,
            "seed": self.seed,
            **context.host.versions,
        }
