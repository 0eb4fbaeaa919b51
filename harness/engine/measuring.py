"""Carry an order out: measure until each of its cases has a record.

A process that does not survive a case leaves the others to a next one. What comes of it goes to a
:class:`Listener`, record by record; nothing here knows where records are stored.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path
from typing import Protocol

import msgspec

from harness.engine.board import Visit
from harness.engine.order import Order
from harness.engine.process import Ending, converse
from harness.engine.unit import Bye, CaseRef, Done, Hello, Message, Unit
from harness.records.schema import Record, to_raw
from harness.sides.variables import variables


class Listener(Protocol):
    """Who is told what becomes of an order."""

    def keep(self, record: Record, ref: CaseRef | None, hopeless: bool = False) -> None:
        """Take a record: of a case, or with None of the process itself or its reference program.

        `hopeless` says of a failure that another process could not do better.
        """

    def tell(self, case: str, stage: str) -> None:
        """Hear what the process is at."""

    def check(self) -> None:
        """Be called some times a second while a process measures; what is raised ends it."""

    def timed(self, bye: Bye) -> None:
        """Hear how much of a process's time was inside timed regions."""


def measure(order: Order, listener: Listener) -> None:
    """Measure the cases of `order`; whatever `listener` raises ends the measuring process."""
    _Measurer(order, listener).run()


class _Measurer:
    def __init__(self, order: Order, listener: Listener) -> None:
        self.order = order
        self.listener = listener

    def run(self) -> None:
        todo = self.order.refs
        if self.order.unit.scenario == "off":
            while todo:
                todo = self._measure(todo, "")
        elif todo:
            with tempfile.TemporaryDirectory() as scratch:
                self._measure_cached(todo, Path(scratch))

    def _measure_cached(self, todo: list[CaseRef], scratch: Path) -> None:
        """Measure with a persistent cache: `cold` in an empty directory, others in a filled one."""
        attempts = itertools.count()
        unit = self.order.unit

        def empty() -> str:
            folder = scratch / str(next(attempts))
            folder.mkdir()
            return str(folder)

        folder = empty()
        if unit.scenario != "cold":
            # CuPy's cache is filled by first calls, which is all that `warm` makes.
            scenario = "cold" if unit.scenario == "warm" and not unit.backend else unit.scenario
            filled: dict[int, str] = {}
            left = todo
            while left:
                left = self._measure(left, folder, scenario, filled)
            # What was put in, so that an entry that holds another program is noticed.
            todo = [
                msgspec.structs.replace(ref, fingerprint=filled.get(ref.index, "")) for ref in todo
            ]
        while todo:
            todo = self._measure(todo, folder)
            if unit.scenario == "cold":
                folder = empty()  # a process that died may have written some of the others' entries

    def _measure(
        self,
        todo: list[CaseRef],
        cache: str,
        scenario: str = "",
        filled: dict[int, str] | None = None,
    ) -> list[CaseRef]:
        """Run one process over `todo`; return what is left because the process did not survive.

        `cache` is the directory of the persistent cache. With `filled`, the process only fills
        that: no record is stored, and `filled` takes the fingerprint of each case's program.
        """
        refs = {ref.index: ref for ref in todo}
        by_key = {ref.key: ref for ref in todo}
        hello: list[Hello] = []
        order, listener = self.order, self.listener

        def on_message(message: Message) -> None:
            if isinstance(message, Hello):
                hello.append(message)
            elif isinstance(message, Done):
                ref = by_key.get(message.record.key)
                if filled is None:
                    listener.keep(message.record, ref)
                elif ref:
                    filled[ref.index] = message.record.fingerprint
                if ref:
                    refs.pop(ref.index)

        def on_visit(visit: Visit) -> None:
            case = order.cases.get(visit.case)
            listener.tell(case.label if case else "(the reference program)", visit.stage)

        unit = self._unit(todo, cache, scenario)
        if filled is not None:
            unit.passes = 1  # the first one fills the directory
        listener.tell(f"{len(todo)} cases", "start")
        ending = converse(
            unit,
            on_message,
            on_visit,
            order.timeout_s,
            order.memory_limit_bytes,
            listener.check,
        )
        if ending.bye:
            listener.timed(ending.bye)
        if not ending.reason:
            return []
        culprit = refs.get(ending.visit.case) if ending.visit else None
        if ending.visit and ending.visit.case in order.cases and not culprit:
            return list(refs.values())  # it died after the record of its last case: no one's fault
        for ref in [culprit] if culprit else list(refs.values()):
            if filled is None:
                listener.keep(self._failure(ref, unit, ending, hello), ref, ending.hopeless)
            refs.pop(ref.index)
        return list(refs.values())

    def _unit(self, todo: list[CaseRef], cache: str, scenario: str) -> Unit:
        unit = self.order.unit
        needed = {}
        if unit.backend:
            needed = variables(unit.backend, unit.threads, unit.precision, cache)
        return msgspec.structs.replace(
            unit,
            cases=todo,
            scenario=scenario or unit.scenario,
            cache_folder=cache,
            environment={**unit.environment, **needed},
        )

    def _failure(self, ref: CaseRef, unit: Unit, ending: Ending, hello: list[Hello]) -> Record:
        case = self.order.cases[ref.index]
        return Record(
            **unit.base,
            key=ref.key,
            axes=dict(case.axes),
            transform=case.transform,
            precision=case.precision,
            comparison=self.order.comparison,
            status="failed",
            reason=ending.reason,
            stderr=ending.stderr,
            started_at_ms=time.time_ns() // 1_000_000,
            environment=hello[0].environment if hello else to_raw({}),
            load_average=hello[0].load_average if hello else [],
        )
