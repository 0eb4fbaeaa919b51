"""What a measuring process is and knows, and the records that it sends."""

from __future__ import annotations

import gc
import os
import time
from typing import Any

import jax

from harness.engine.board import Board
from harness.engine.unit import Done, Hello, Unit
from harness.records import environment
from harness.records.schema import Record, to_raw
from harness.stages import injection
from harness.stages.passes import gc_off
from harness.targets.topologies import Topology, unusable
from harness.watch import evidence

_clock = time.perf_counter_ns


class Session:
    """One process that measures one unit: its once-per-process costs, and what its records share.

    :func:`harness.engine.visiting.measure` takes it through its cases.
    """

    def __init__(
        self,
        unit: Unit,
        workload: Any,
        send: Any,
        board: Board,
        process_ns: dict[str, float],
        topology: Topology | None = None,
    ) -> None:
        self.unit = unit
        self.workload = workload
        self.send = send
        self.board = board
        self.process_ns = process_ns
        self.topology = topology
        self.x64 = jax.config.values["jax_enable_x64"]
        self.proof = evidence.Evidence()
        self.timed_ns = 0.0
        self.work: injection.Work | None = None
        self.ready_ns = time.monotonic_ns() - unit.spawned_ns
        self.process_ns["ready"] = self.ready_ns
        self.started_at_ms = time.time_ns() // 1_000_000
        self.load_average = list(os.getloadavg())

    def begin(self) -> None:
        """Say hello, and pay what a process pays once."""
        self.environment = to_raw(self._environment())
        self.send(Hello(self.environment, self.load_average))
        self._first_program()
        gc.freeze()  # what the imports left need not be looked at again
        if any(ref.extra_ns for ref in self.unit.cases):
            self.work = injection.measure_work()

    def _environment(self) -> dict[str, Any]:
        device = jax.devices()[0]
        kind, count = device.device_kind, jax.device_count()
        if self.topology is not None:
            device, count = self.topology.device, len(self.topology.devices)
            kind = f"{device.device_kind} (compile-only)"
        return {
            **self.unit.surroundings,
            "flags": environment.flags(),
            "device": kind,
            "devices": count,
            "platform": device.platform,
            "platform_version": device.client.platform_version,
            "x64": bool(self.x64),
        }

    def _first_program(self) -> None:
        """Compile one trivial program: what the first one of a process pays, kept by itself."""

        def first(x: Any) -> Any:
            return x + 1

        one = self.topology.one if self.topology else None
        traced = jax.jit(first).trace(jax.ShapeDtypeStruct((8,), "float32", sharding=one))
        with gc_off():
            begin = _clock()
            lowered = traced.lower()
            middle = _clock()
            try:
                lowered.compile()
            except Exception as error:  # what XLA says of a device that it cannot compile for
                if self.topology is None:
                    raise
                raise unusable(self.topology.target, error) from error
            end = _clock()
        self.process_ns["first_lower"] = middle - begin
        self.process_ns["first_compile"] = end - middle

    def record(self, key: str, **fields: Any) -> Record:
        """Return a record with everything in it that the unit and the process know."""
        base = {
            **self.unit.base,
            "key": key,
            "environment": self.environment,
            "load_average": self.load_average,
            "started_at_ms": self.started_at_ms,
            **fields,
        }
        return Record(**base)

    def fail(self, key: str, reason: str) -> None:
        """Send the record of a case that this process does not know."""
        self.send(Done(self.record(key, axes={}, transform="", status="failed", reason=reason)))
