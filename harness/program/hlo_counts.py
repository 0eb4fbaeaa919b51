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
    from harness.program.hlo import HloProgram

_COLLECTIVES = (
    *("all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute"),
    *("ragged-all-to-all", "reduce-scatter"),
)

_KIND = re.compile(r"\bkind=k([A-Z]\w*)")


def _instructions(program: HloProgram) -> int:
    return sum(map(len, program.by_opcode.values()))


def _fusions(program: HloProgram) -> dict[str, int]:
    fusions = program.by_opcode.get("fusion", ())
    return _counted(one.attribute(_KIND).lower() or "unknown" for one in fusions)


def _custom_calls(program: HloProgram) -> dict[str, int]:
    return _counted(one.attribute(TARGET) for one in program.by_opcode.get("custom-call", ()))


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
    read=_instructions,
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
    read=_custom_calls,
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
