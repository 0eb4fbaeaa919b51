"""A measuring process that takes one side of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax

from harness import targets
from harness.engine.session import CaseRun, Session
from harness.records import environment
from harness.sides.compared_case import ComparedCase
from harness.sides.side import Side
from harness.sides.side_process import ProcessState
from harness.stages.scenarios.registry import SCENARIOS


@dataclass(eq=False)
class ComparedSession(Session):
    """A process that takes one side of a comparison."""

    state: ProcessState
    side: Side

    def describe(self) -> dict[str, Any]:
        """Return the flags and, where JAX computes, the device."""
        flags = environment.flags() | self.job.environment
        flags.pop("CUPY_CACHE_DIR", None)  # a scratch folder, whose path says nothing
        known = {"flags": flags, "platform": targets.find(self.job.target).family}
        if not self.side.uses_jax:
            return known
        device = jax.devices()[0]
        return known | {
            "device": device.device_kind,
            "devices": jax.device_count(),
            "platform": device.platform,
            "platform_version": device.client.platform_version,
        }

    def prepare(self) -> None:
        """Do nothing: the side is awake."""

    def runs(self) -> dict[str, CaseRun]:
        """Return the cases."""
        runs = {}
        for ref, case in self.cases():
            compared = ComparedCase(
                self.workload,
                case,
                self.side,
                self.state,
                self.job.threads,
                only_fill=SCENARIOS[self.job.scenario].directory == "filled",
            )
            runs[ref.key] = CaseRun(self, ref, compared)
        return runs
