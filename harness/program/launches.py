"""Count what an optimised program sets going while it runs, as far as the program itself says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.program.fact import Fact
from harness.program.text import TARGET

if TYPE_CHECKING:
    from harness.program.hlo import HloProgram, Instruction

FREE = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        # Order and identity, known when the program is built or loaded.
        "after-all",
        "add-dependency",
        "opt-barrier",
        "domain",
        "partition-id",
        "replica-id",
    }
)
"""Instructions that name data and move none. The `-done` and `-update` halves of asynchronous ones
are free as well: the `-start` was counted."""

FREE_TARGETS = frozenset({"AllocateBuffer", "AssumeGatherIndicesInBound", "ConcatBitcast"})
"""Custom calls of XLA:TPU that only reserve memory or say something of it."""

SMALL_CALL = 'xla_cpu_small_call="true"'
"""Marks a `call` whose whole body, loops included, XLA:CPU emits as one kernel (jaxlib 0.10 to
0.12; its profile shows one event for it)."""


def launches(program: HloProgram) -> int:
    """Return how many units of work one run of the program sets going.

    A unit is an instruction of the entry computation that is not free (`FREE`, `FREE_TARGETS`): a
    fusion, a library call, a copy, a collective, an operation by itself.

    - A `call` counts what it calls; one marked `SMALL_CALL` counts one.
    - A `while` counts its body times its trip count, nested loops multiplied. Its condition then
      counts nothing: neither XLA:CPU nor XLA:GPU evaluates it where the trip count is known.
      Where that is not known, body and condition count once each: the least that a loop does
      which is entered.
    - A `conditional` counts its largest branch.
    - An asynchronous pair counts once, or as what it wraps.

    A unit is one kernel for most of XLA:GPU's fusions; a library call may launch several (sort,
    FFT) and a copy of a few bytes may be no kernel at all. On TPU, where one program runs without
    launches, it is the number of steps in that program.
    """
    known: dict[str, int] = {}
    return sum(_computation(program, name, known) for name in program.entries)


def _computation(program: HloProgram, name: str, known: dict[str, int]) -> int:
    if name not in known:  # HLO's computations call no one recursively
        known[name] = sum(
            _instruction(program, instruction, known)
            for instruction in program.computations.get(name, ())
        )
    return known[name]


def _instruction(program: HloProgram, instruction: Instruction, known: dict[str, int]) -> int:
    opcode = instruction.opcode
    if opcode in FREE or opcode.endswith(("-done", "-update")):
        return 0
    opcode = opcode.removesuffix("-start")
    if opcode == "custom-call":
        return int(instruction.attribute(TARGET) not in FREE_TARGETS)
    if opcode == "call" and SMALL_CALL in instruction.attributes:
        return 1
    if opcode not in ("call", "while", "conditional", "async"):
        return 1
    inside = [
        (attribute, _computation(program, name, known)) for attribute, name in instruction.callees
    ]
    if opcode == "conditional":
        return max((count for _, count in inside), default=0)
    if opcode == "while" and instruction.trips is not None:
        return instruction.trips * sum(count for attribute, count in inside if attribute == "body")
    return sum(count for _, count in inside)


LAUNCHES = Fact(
    name="launches",
    source="hlo",
    unit="count",
    better="less",
    meaning="what one call starts: entry instructions that do work, times the trips of loops",
    noun="launch",
    nouns="launches",
    read=launches,
    rank=1,
    column=True,
)
