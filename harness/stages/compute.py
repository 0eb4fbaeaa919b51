"""`compute`."""

from harness.stages.blocks import BLOCKS, time_blocks
from harness.stages.stage import Stage, Step

STEPS: tuple[Step, ...] = ("build", "compile", "compute")
"""The steps of a visit: the program is built anew each time, so it also gives the CPU time of
`trace`, `lower` and `compile`, with one thread that generates code."""

VISITS = 3
"""Visits to a case in one process, each with about 20 ms of calls."""

LONG_S = 5.0
"""A case whose compile takes longer is visited once in a process."""

UNDISTURBED = 0.9
"""CPU time over wall time of a visit below which somebody else had the processor."""

PROTOCOL = f"{VISITS} visits x a build and least calls of {BLOCKS} blocks"

ONLY_ON_A_CPU = (
    "compute is measured on a CPU, on one thread; on a GPU it would be the device's own time of a "
    "call, which is not measured yet"
)


STAGE = Stage(
    name="compute",
    title="The program's own work: a call computed inline, on one thread.",
    step="compute",
    statistic=min,
    effect=0.03,
    colour="#F0E442",
    take=lambda run: run.repeated("compute", time_blocks),
    asv={"off": "compute"},
    power={"default": 0.1, "thorough": 0.05},
)
