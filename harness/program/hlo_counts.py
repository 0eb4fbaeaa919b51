"""Count instructions, fusions, custom calls, loops and collectives in an optimised program.

All computations are looked at, and each instruction counts once, whatever calls it. An
asynchronous operation counts where it starts. Counts by kind are sorted; the trips of loops are
too, largest first and unknown ones last.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.program.fact import Fact
from harness.program.text import TARGET

if TYPE_CHECKING:
    from harness.program.hlo import HloProgram, Instruction


_COLLECTIVES = (
    *("all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute"),
    *("ragged-all-to-all", "reduce-scatter"),
)

_KIND = re.compile(r"\bkind=k([A-Z]\w*)")


def _fusions(program: HloProgram) -> dict[str, int]:
    fusions = program.by_opcode.get("fusion", ())
    return _counted(one.attribute(_KIND).lower() or "unknown" for one in fusions)


def _collectives(program: HloProgram) -> dict[str, int]:
    counts = {kind: len(program.by_opcode.get(kind, ())) for kind in _COLLECTIVES}
    return {kind: count for kind, count in counts.items() if count}


def _trips(program: HloProgram) -> list[int | None]:
    trips = (loop.trips for loop in program.by_opcode.get("while", ()))
    return sorted(trips, key=lambda n: (n is None, -(n or 0)))


def _counted(kinds: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(kinds).items()))


_count = functools.partial(Fact, source="hlo", unit="count", better="less")

INSTRUCTIONS = _count(
    name="hlo_instructions",
    meaning="instructions of the optimised HLO",
    noun="HLO instruction",
    read=lambda program: sum(map(len, program.by_opcode.values())),
    rank=3,
)

FUSIONS = _count(
    name="fusions",
    meaning="groups of operations that XLA made one kernel",
    noun="fusion",
    read=_fusions,
    parts="fusion_kinds",
    rank=2,
    column=True,
)

CUSTOM_CALLS = _count(
    name="custom_calls",
    meaning="calls of library code, such as BLAS, LAPACK or cuDNN",
    noun="custom call",
    read=lambda program: _counted(
        one.attribute(TARGET) for one in program.by_opcode.get("custom-call", ())
    ),
    parts="custom_call_targets",
)

WHILE_LOOPS = _count(
    name="while_loops",
    meaning="loops; after them, how often each runs where XLA knows",
    noun="while loop",
    read=_trips,
    parts="loop_trips",
    part="trips",
)

COLLECTIVES = _count(
    name="collectives",
    meaning="exchanges between devices",
    noun="collective",
    read=_collectives,
    parts="collective_kinds",
)


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
