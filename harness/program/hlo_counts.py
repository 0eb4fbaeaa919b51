"""Count fusions, custom calls, loops and collectives in an optimised program."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from harness.program.hlo import Program
from harness.program.launches import TARGET, launches

COLLECTIVES = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "reduce-scatter",
    }
)

_KIND = re.compile(r"\bkind=k([A-Z]\w*)")


def counts(program: Program) -> dict[str, Any]:
    """Return the facts that the optimised HLO holds, by the names of `Facts`' fields.

    All computations are looked at, and each instruction counts once, whatever calls it. An
    asynchronous operation counts where it starts. Dictionaries are sorted; the trip counts of
    loops are too, largest first and unknown ones last.
    """
    fusions: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    collectives: Counter[str] = Counter()
    trips: list[int | None] = []
    total = 0
    for instruction in program.instructions():
        total += 1
        opcode = instruction.opcode.removesuffix("-start")
        if opcode == "fusion":
            fusions[instruction.attribute(_KIND).lower() or "unknown"] += 1
        elif opcode == "custom-call":
            targets[instruction.attribute(TARGET)] += 1
        elif opcode == "while":
            trips.append(instruction.trips)
        elif opcode in COLLECTIVES:
            collectives[opcode] += 1
    return {
        "hlo_instructions": total,
        "fusions": fusions.total(),
        "custom_calls": targets.total(),
        "while_loops": len(trips),
        "collectives": collectives.total(),
        "launches": launches(program),
        "fusion_kinds": dict(sorted(fusions.items())),
        "custom_call_targets": dict(sorted(targets.items())),
        "collective_kinds": dict(sorted(collectives.items())),
        "loop_trips": sorted(trips, key=lambda n: (n is None, -(n or 0))),
    }
