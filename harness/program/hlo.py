"""Read optimised HLO into computations and instructions, and count what is in them.

The text is read: of JAX's HLO objects, neither the kind of a fusion nor the target of a custom call
has an accessor, and to print them one by one takes longer.

All computations are looked at, and each instruction counts once, whatever calls it. An
asynchronous operation counts where it starts. Counts by kind are sorted; the trips of loops are
too, largest first and unknown ones last.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from harness.program.fact import Fact
from harness.program.text import METADATA, TARGET

_OPCODE = re.compile(r" ([a-z][a-z0-9-]*)\(")
"""What follows the type. A type may hold parentheses (tuples, tilings) but never ` word(`."""

_COMPUTATION = re.compile(r"^(ENTRY )?%?([^\s({]+) .*\{$")
_ONE_CALLEE = re.compile(
    r"\b(calls|to_apply|condition|body|true_computation|false_computation|select|scatter)"
    r"=%?([^\s,{}]+)"
)
_CALLEES = re.compile(r"\b(branch_computations|called_computations|calls)=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')

_PLAIN = frozenset({"constant", "parameter"})
"""Instructions without attributes that matter; the text of a constant may be megabytes."""


@dataclass(slots=True)
class Instruction:
    """One instruction: its name, its opcode as HLO's text writes it, and what follows that."""

    name: str
    opcode: str
    rest: str = ""
    """Operands, attributes and metadata; empty for constants and parameters."""

    @property
    def attributes(self) -> str:
        """Operands and attributes without metadata, where a user's names stand."""
        return METADATA.sub("", self.rest)

    @property
    def callees(self) -> list[tuple[str, str]]:
        """The computations it uses, each with the attribute that names it, such as `body`."""
        if "=" not in self.rest:
            return []
        attributes = self.attributes
        pairs = [match.groups() for match in _ONE_CALLEE.finditer(attributes)]
        for attribute, names in _CALLEES.findall(attributes):
            pairs += [(attribute, name.strip().lstrip("%")) for name in names.split(",")]
        return [(attribute, name) for attribute, name in pairs if name]

    @property
    def trips(self) -> int | None:
        """How often a while loop runs, None where XLA does not know it."""
        match = _TRIPS.search(self.attributes)
        return int(match[1]) if match else None

    def attribute(self, pattern: re.Pattern[str]) -> str:
        """Return the first group of `pattern` in the attributes, or ""."""
        match = pattern.search(self.attributes)
        return match[1] if match else ""


@dataclass
class HloProgram:
    """The computations of an optimised program by name, and where it begins."""

    computations: dict[str, list[Instruction]] = field(default_factory=dict)
    entries: list[str] = field(default_factory=list)
    """The entry computation; several where a program consists of several modules."""

    @functools.cached_property
    def by_opcode(self) -> dict[str, list[Instruction]]:
        """Every instruction of every computation; what is asynchronous, by what it starts."""
        grouped: dict[str, list[Instruction]] = {}
        for instruction in self.instructions():
            grouped.setdefault(instruction.opcode.removesuffix("-start"), []).append(instruction)
        return grouped

    def instructions(self) -> Iterator[Instruction]:
        """Yield every instruction of every computation."""
        for instructions in self.computations.values():
            yield from instructions


def from_text(text: str) -> HloProgram:
    """Return the program that the text of one or several HLO modules describes."""
    program = HloProgram()
    current: list[Instruction] | None = None
    for line in text.splitlines():
        if line.startswith((" ", "\t")):
            instruction = _read_line(line) if current is not None else None
            if instruction and current is not None:
                current.append(instruction)
        elif line.startswith("}"):
            current = None
        elif line.endswith("{"):
            match = _COMPUTATION.match(line)
            if match and not line.startswith("HloModule"):
                current = program.computations.setdefault(match[2], [])
                if match[1]:
                    program.entries.append(match[2])
    return program


def _read_line(line: str) -> Instruction | None:
    name, equals, _ = line.partition(" = ")
    match = _OPCODE.search(line, len(name) + len(equals) - 1) if equals else None
    if match is None:
        return None
    opcode = match[1]
    rest = "" if opcode in _PLAIN else line[match.end() :]
    return Instruction(name.strip().removeprefix("ROOT ").removeprefix("%"), opcode, rest)


# What is counted

_COLLECTIVES = (
    "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute",
    "ragged-all-to-all", "reduce-scatter",
)  # fmt: skip

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


_count = functools.partial(Fact, source="hlo")

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
    read=lambda program: _counted(called(program)),
    parts="custom_call_targets",
)


def called(program: HloProgram) -> list[str]:
    """Return the target of each custom call."""
    return [one.attribute(TARGET) for one in program.by_opcode.get("custom-call", ())]


def hidden_calls(program: HloProgram) -> int:
    """Return how many calls of a program do work that XLA's analysis of it does not see.

    Those of the host are custom calls on CPU and GPU, and sent and received on TPU.
    """
    sent = program.by_opcode.get("send", ())
    of_host = sum("is_host_transfer=true" in one.attributes for one in sent)
    return of_host + sum(target not in WORKLESS for target in called(program))


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

WORKLESS = FREE_TARGETS | {
    "GatherScatterIndicesBitpacked",
    "X64Combine",
    "X64SplitLow",
    "X64SplitHigh",
}
"""Custom calls of XLA:TPU that compute nothing."""

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

    @functools.cache
    def computation(name: str) -> int:  # HLO's computations call no one recursively
        return sum(map(work, program.computations.get(name, ())))

    def work(instruction: Instruction) -> int:
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
        inside = [(attribute, computation(name)) for attribute, name in instruction.callees]
        if opcode == "conditional":
            return max((count for _, count in inside), default=0)
        if opcode == "while" and instruction.trips is not None:
            return instruction.trips * sum(n for attribute, n in inside if attribute == "body")
        return sum(count for _, count in inside)

    return sum(map(computation, program.entries))


LAUNCHES = _count(
    name="launches",
    meaning="what one call starts: entry instructions that do work, times the trips of loops",
    noun="launch",
    nouns="launches",
    read=launches,
    rank=1,
    column=True,
)
