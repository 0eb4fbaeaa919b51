"""A case whose program runs on one thread: visited among the cases of many workloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.records.schema import StageSamples
from harness.stages import compute, reference
from harness.stages.passes import Pass
from harness.stages.stage import Step
from harness.stages.staged_case import StagedCase


@dataclass
class ComputeCase(StagedCase):
    """A case that is built anew in each visit, and then called for about 20 ms."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of a visit."""
        return compute.STEPS

    def visit(self, number: int, announce: Callable[[str], None]) -> float:
        """Make a visit; return the nanoseconds inside timed regions."""
        self.loop_ns.append(reference.loop_ns())
        timed_ns = super().visit(number, announce)
        assert self.prepared is not None
        # Other cases need the memory, and new buffers may lie better for the processor's caches.
        self.prepared.forget_data()
        return timed_ns + reference.LOOPS * self.loop_ns[-1]

    def _add(self, taken: Pass) -> None:
        super()._add(taken)
        self.samples["compute"].disturbed += taken.share < compute.UNDISTURBED

    def stages(self) -> dict[str, StageSamples]:
        """Return the samples by stage."""
        return self.samples
