"""What differs in two parts of a key, as codes and values.

Of the program a recording has its StableHLO text, whose lines are shown, short enough to read. Of
the accelerator JAX hashes eight bytes; a recording has what they are made of: the devices of the
process, its number, and on CPUs the processor with its features. Compile options it has field by
field.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.cache.executable import Machine


@dataclass(frozen=True)
class KeyChange:
    """One thing that differs between two requests to compile.

    Attributes:
        kind: a code; `harness.output.explain` has the words of each.
        name: of the setting, flag or compile option; else empty.
        before: the value in the first run; empty where it is not short, or there was none.
        after: the value in the second run.
    """

    kind: str
    name: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Accelerator:
    """What a recording has of the devices that a program was compiled for.

    Attributes:
        local: The devices of the process by kind, such as `2 cpu`.
        devices: How many there are in all processes.
        processes: How many processes there are; 0 where an older ledger has none.
        processor: The processor as LLVM names it, such as `znver5`; empty where it is unknown.
    """

    local: str
    devices: int
    processes: int
    process: int
    processor: str
    features: frozenset[str]

    @staticmethod
    def read(text: str) -> Accelerator:
        """Read the part of a recording."""
        kept = json.loads(text)
        machine = Machine()
        machine.look(bytes.fromhex(kept["topology"]))
        kinds = Counter(kept["kinds"]).items()
        return Accelerator(
            ", ".join(f"{count} {kind}" for kind, count in kinds),
            kept["devices"],
            kept.get("processes", 0),
            kept["process"],
            machine.processor,
            frozenset(machine.features),
        )


def accelerator_changes(a: str, b: str) -> tuple[KeyChange, ...]:
    """Return what differs between what two recordings have of accelerators; nothing if unknown."""
    old, new = Accelerator.read(a), Accelerator.read(b)
    compared = (
        ("devices", old.local, new.local, True),
        ("process", old.process, new.process, True),
        ("processes", old.processes, new.processes, old.processes and new.processes),
        ("all devices", old.devices, new.devices, old.local == new.local),
        ("processor", old.processor, new.processor, True),
    )
    changes = [
        KeyChange(kind, "", f"{x}", f"{y}")
        for kind, x, y, is_recorded in compared
        if is_recorded and x != y
    ]
    lost, gained = old.features - new.features, new.features - old.features
    if lost or gained:
        changes.append(
            KeyChange("features", "", *(" ".join(sorted(one)) for one in (lost, gained)))
        )
    return tuple(changes)


# Compile options

PER_ARGUMENT = (
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
)
"""Options with a value for each argument or result."""


def option_changes(a: str, b: str) -> tuple[KeyChange, ...]:
    """Return the fields that differ between what two recordings have of their compile options."""
    before, after = json.loads(a), json.loads(b)
    return tuple(
        KeyChange("option", name, before.get(name, ""), after.get(name, ""))
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    )


def field_of(change: KeyChange) -> str:
    """Return XLA's name of a compile option, without where it lies."""
    return change.name.rpartition(".")[2]


def follows(change: KeyChange) -> bool:
    """Return whether an option differs only as there are more or fewer arguments."""
    return field_of(change) in PER_ARGUMENT and change.before.count(",") != change.after.count(",")


# The program

ELIDED = "__elided__"


@dataclass(frozen=True)
class Rule:
    """A kind of change, and what it leaves in the text: its matches are all that it may explain."""

    kind: str
    pattern: re.Pattern[str]
    bearer: str = ""
    """The operation that bears it: named only where both texts have as many of those."""

    def explains(self, a: str, b: str) -> bool:
        """Whether two texts differ in it."""
        comparable = not self.bearer or a.count(self.bearer) == b.count(self.bearer)
        return comparable and self.pattern.findall(a) != self.pattern.findall(b)


_NAME = re.compile(r"(?<=^module @)\S+", re.MULTILINE)

RULES = (
    Rule("renamed", _NAME),
    Rule(
        "result tree",
        re.compile(r'jax\.result_info = "(?:[^"\\]|\\.)*"'),
    ),
    Rule(
        "donation",
        re.compile(r"(?:tf\.aliasing_output = \d+ : i32|jax\.buffer_donor = (?:true|false))"),
    ),
    Rule(
        "sharding",
        re.compile(
            r'mhlo\.sharding = "(?:[^"\\]|\\.)*"|sdy\.sharding = #sdy\.sharding<[^>]*>+'
            r"|^\s*sdy\.mesh .*$|mhlo\.num_(?:partitions|replicas) = \d+ : i32",
            re.MULTILINE,
        ),
    ),
    Rule(
        "precision",
        re.compile(r"precision = \[[^\]]*\]|algorithm = <[^>]*>"),
        bearer="stablehlo.dot_general",
    ),
    Rule("constant", re.compile(r'dense<(?:"[^"]*"|[^>]*)>'), bearer="stablehlo.constant"),
    Rule("layout", re.compile(r'mhlo\.layout_mode = "[^"]*"')),
    Rule(
        "dimensions",
        re.compile(r"\w*(?:dimensions|dims) = \[[^\]]*\](?: x \[[^\]]*\])?"),
        bearer="dim",
    ),
)

_SIGNATURE = re.compile(r"func\.func public @main\((.*)$", re.MULTILINE)
_TYPE = re.compile(r"%arg\d+: (tensor<[^>]*>)")
_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)([^>]*)>")

MAX_LINES = 12
MAX_WIDTH = 160

MAX_ALIGNED = 2000
"""So many lines are aligned at most, from the first that differs: aligning takes quadratic time."""


def without_name(text: str) -> str:
    """Return a module's text without the module's name."""
    return _NAME.sub("_", text, count=1)


def program_changes(a: str, b: str) -> tuple[KeyChange, ...]:
    """Return what the difference of two texts shows, and whether other operations remain."""
    ids, a, b = _without_ids(a, b)
    keys, a, b = _without_key_types(a, b)
    changes = (*ids, *keys)
    if _lines(a) == _lines(b):
        return changes or (ORDER,)
    return (*changes, *_other_changes(a, b))


ORDER = KeyChange("order")
"""The same operations in another order."""

_ID = re.compile(r'dense<(?:"[^"]*"|[^>]*)>|tensor<[^>]*>|(0x[0-9a-fA-F]{8,}|(?<![\d.])\d{10,})')
"""What Python's id() and addresses look like, outside of constants and types."""


def _without_ids(a: str, b: str) -> tuple[tuple[KeyChange, ...], str, str]:
    """Return whether numbers like Python's ids differ, and both texts without them."""
    ids_a, ids_b = ([one for one in _ID.findall(text) if one] for text in (a, b))
    if ids_a == ids_b or len(ids_a) != len(ids_b):
        return (), a, b
    old, new = next((x, y) for x, y in zip(ids_a, ids_b, strict=True) if x != y)
    a, b = (_ID.sub(lambda one: "" if one[1] else one[0], text) for text in (a, b))
    return (KeyChange("python id", "", old, new),), a, b


_EMPTY_MESH = re.compile(r"^\s*sdy\.mesh @empty_mesh = .*\n", re.MULTILINE)
_OF_A_KEY = re.compile(
    r"^\s*(%\w+) = sdy\.sharding_constraint (%\w+) <@empty_mesh, .*> : "
    r"tensor<(?:\d+x)*[24]xui32>\n",
    re.MULTILINE,
)
"""What JAX puts where a typed key becomes its numbers (jax 0.10 to 0.12)."""


def _without_key_types(a: str, b: str) -> tuple[tuple[KeyChange, ...], str, str]:
    """Return whether one program takes typed keys of random numbers, and both without."""
    typed = [len(_OF_A_KEY.findall(text)) for text in (a, b)]
    if typed[0] == typed[1]:
        return (), a, b
    old, new = ("typed", "raw") if typed[0] > typed[1] else ("raw", "typed")
    a, b = (_EMPTY_MESH.sub("", _OF_A_KEY.sub("", text)) for text in (a, b))
    return (KeyChange("random key", "", old, new),), a, b


_VALUE = re.compile(r"%\w+(?:#\d+)?(?::\d+)?")


def _lines(text: str) -> Counter[str]:
    """Return the lines of a text, whatever their order and the names of their values."""
    return Counter(_VALUE.sub("%", text).splitlines())


def _other_changes(a: str, b: str) -> tuple[KeyChange, ...]:
    types_a, types_b = _argument_types(a), _argument_types(b)
    if types_a != types_b:
        # Every line follows from the shapes; what else differs says nothing of its own.
        return (*_random(a, b), KeyChange("shapes", "", types_a, types_b))
    shown = tuple(KeyChange(rule.kind) for rule in RULES if rule.explains(a, b))
    bare_a, bare_b = a, b
    for rule in RULES:
        bare_a, bare_b = rule.pattern.sub("", bare_a), rule.pattern.sub("", bare_b)
    # Taking an attribute away leaves the punctuation around it.
    if shown and _punctuation(bare_a) == _punctuation(bare_b):
        return shown
    return (*(one for one in shown if one.kind != "dimensions"), *_operations(a, b))


def _operations(a: str, b: str) -> tuple[KeyChange, ...]:
    special = list(_random(a, b))
    if _BARRIER.findall(a) != _BARRIER.findall(b):
        special.append(KeyChange("rematerialisation"))
    if _CONSTRAINT.findall(a) != _CONSTRAINT.findall(b):
        special.append(KeyChange("constraint"))
    calls_a, calls_b = set(_CALLED.findall(a)), set(_CALLED.findall(b))
    if calls_a != calls_b:
        both = (", ".join(sorted(calls)) for calls in (calls_a, calls_b))
        special.append(KeyChange("library call", "", *both))
    if not special and Counter(_OPERATION.findall(a)) == Counter(_OPERATION.findall(b)):
        special.append(ORDER)
    return tuple(special) or (KeyChange("operations"),)


def _random(a: str, b: str) -> tuple[KeyChange, ...]:
    old, new = (next((name for name, sign in _RANDOM if sign in text), "") for text in (a, b))
    return (KeyChange("random numbers", "", old, new),) if old != new and old and new else ()


_RANDOM = ("rbg", "stablehlo.rng_bit_generator"), ("threefry", "threefry")
"""Kinds and their signs; rbg makes its first numbers by threefry."""
_BARRIER = re.compile(r"stablehlo\.optimization_barrier.*")
_CONSTRAINT = re.compile(r"sdy\.sharding_constraint .*? <.*|stablehlo\.custom_call @Sharding")
_CALLED = re.compile(r"stablehlo\.custom_call @(?!Sharding\b)([\w.$]+)")
_OPERATION = re.compile(r"\b((?:stablehlo|chlo)\.\w+|call @\w+).* : (.*)$", re.MULTILINE)
"""An operation with its types, whatever the values that it works on."""


def _punctuation(text: str) -> str:
    return re.sub(r"[\s,{}]+", "", text.replace("attributes", ""))


def _argument_types(text: str) -> str:
    signature = _SIGNATURE.search(text)
    return ", ".join(_TYPE.findall(signature.group(1))) if signature else ""


def types(text: str) -> tuple[tuple[str, str], ...]:
    """Return the shape and the dtype of each argument and result of a module, as text."""
    signature = _SIGNATURE.search(text)
    return tuple(_TENSOR.findall(signature.group(1))) if signature else ()


def diff(a: str, b: str) -> tuple[str, ...]:
    """Return the changed lines of a unified diff: few of them, cut to where they differ."""
    old, new = a.splitlines(), b.splitlines()
    same = _alike(old, new)
    old, new = old[same : same + MAX_ALIGNED], new[same : same + MAX_ALIGNED]
    lines = [
        line
        for line in difflib.unified_diff(old, new, n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    shown = _cut(lines[:MAX_LINES])
    if len(lines) > MAX_LINES:
        shown.append(f"... and {len(lines) - MAX_LINES} more changed lines")
    return tuple(shown)


def _cut(lines: list[str]) -> list[str]:
    removed = [line for line in lines if line.startswith("-")]
    added = [line for line in lines if line.startswith("+")]
    starts: dict[str, int] = {}
    for old, new in zip(removed, added, strict=False):
        differ = _alike(old[1:], new[1:])
        starts[old] = starts[new] = max(0, differ - MAX_WIDTH // 3)
    return [_window(line, starts.get(line, 0)) for line in lines]


def _alike(old: Sequence[str], new: Sequence[str]) -> int:
    """Return with how many equal elements both begin."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((number for number, (x, y) in pairs if x != y), min(len(old), len(new)))


def _window(line: str, start: int) -> str:
    sign, rest = line[:1], line[1:].strip() if len(line) <= MAX_WIDTH else line[1:]
    if len(rest) <= MAX_WIDTH:
        return f"{sign} {rest}"
    head = "..." if start else ""
    tail = "..." if start + MAX_WIDTH < len(rest) else ""
    return f"{sign} {head}{rest[start : start + MAX_WIDTH]}{tail}"
