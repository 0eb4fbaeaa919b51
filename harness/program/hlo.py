"""Read optimised HLO into computations and instructions: the one place that knows how.

JAX's HLO objects give the structure where jaxlib has them (0.10.2 and later); elsewhere the text
of the module does. Both give one line of text per instruction, which is read alike, because
neither the kind of a fusion nor the target of a custom call has an accessor.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

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

_PLAIN_OBJECTS = {f"HloOpcode.k{name.capitalize()}": name for name in _PLAIN}


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


def modules(compiled: Any) -> list[Any]:
    """Return JAX's objects for the optimised modules of a `jax.stages.Compiled`, if it has any."""
    executable = compiled.runtime_executable()
    try:
        return list(executable.hlo_modules())
    except (AttributeError, NotImplementedError, RuntimeError):  # a back end need not keep them
        return []


def from_compiled(compiled: Any, objects: list[Any] | None = None) -> HloProgram | None:
    """Return the optimised program of a `jax.stages.Compiled`, None where there is none to read.

    `objects` is what `modules` gave, if the caller has asked already.
    """
    found = modules(compiled) if objects is None else objects
    program = from_objects(found)
    if program is None:
        text = compiled.as_text()
        program = from_text(text) if text else None
    return program


def from_objects(found: list[Any]) -> HloProgram | None:
    """Return the program that JAX's HLO objects hold.

    None where jaxlib cannot list the instructions of a computation (0.10.1 and earlier) or where
    it cannot be told which computation is the entry: that has no accessor, and is the only one
    which no other uses.
    """
    if len(found) != 1:
        return None
    program = HloProgram()
    hidden: set[str] = set()
    for computation in found[0].computations():
        if not hasattr(computation, "instructions"):
            return None
        lines: list[Instruction] = []
        for instruction in computation.instructions():
            opcode = str(instruction.opcode)
            if opcode in _PLAIN_OBJECTS:
                lines.append(Instruction(instruction.name, _PLAIN_OBJECTS[opcode]))
                continue
            read = _read_line(instruction.to_string())
            if read is None:
                return None
            lines.append(read)
            if opcode == "HloOpcode.kAsyncStart" and read.opcode != "async-start":
                # The text writes `fusion-start` and leaves out the computation it stands for.
                hidden.add(instruction.async_wrapped_root().name)
        program.computations[computation.name] = lines
    if hidden:
        program.computations = {
            name: lines
            for name, lines in program.computations.items()
            if not any(line.name in hidden for line in lines)
        }
    used = {name for line in program.instructions() for _, name in line.callees}
    program.entries = [name for name in program.computations if name not in used]
    return program if len(program.entries) == 1 else None


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
