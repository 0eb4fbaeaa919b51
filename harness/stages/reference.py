"""The reference program: measured in every process, so that a drift of the machine can be seen.

A value divided by the reference's value of the same process is called calibrated. Never change
this program without raising `harness.workload.source.METHOD_VERSION`.
"""

from __future__ import annotations

import time
from typing import Any

import jax.numpy as jnp

from harness.workload.workload import Spec, Workload, spec

LOOP_ROUNDS = 2_000

LOOPS = 10
"""How often the plain Python loop is timed; the least counts."""


class Reference(Workload):
    """A small program: elementwise steps and two reductions, one tenth of a second in all."""

    targets = ("cpu",)

    def inputs(self) -> tuple[Spec, Spec]:
        """Return a 64 x 64 matrix and a vector of 64, float32."""
        return spec((64, 64)), spec((64,))

    @staticmethod
    def function(matrix: Any, vector: Any) -> Any:
        """Return a vector of 64, float32."""
        return jnp.tanh(matrix * vector).sum(axis=1) + jnp.mean(matrix, axis=1)


def loop_ns() -> float:
    """Return how fast the machine is just now: the least time of a fixed plain Python loop."""
    return float(min(_time_loop() for _ in range(LOOPS)))


def _time_loop() -> int:
    clock = time.perf_counter_ns
    begin = clock()
    total = 0
    for number in range(LOOP_ROUNDS):
        total += number * number
    return clock() - begin
