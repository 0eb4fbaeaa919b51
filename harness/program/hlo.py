"""Read optimised HLO into computations and instructions: the one place that knows how.

The text is read: of JAX's HLO objects, neither the kind of a fusion nor the target of a custom call
has an accessor, and to print them one by one takes longer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.program.text import METADATA

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
        found = [match.groups() for match in _ONE_CALLEE.finditer(attributes)]
        for attribute, names in _CALLEES.findall(attributes):
            found += [(attribute, name.strip().lstrip("%")) for name in names.split(",")]
        return [(attribute, name) for attribute, name in found if name]

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
        found: dict[str, list[Instruction]] = {}
        for instruction in self.instructions():
            found.setdefault(instruction.opcode.removesuffix("-start"), []).append(instruction)
        return found

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
