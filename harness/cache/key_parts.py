"""What differs in two parts of a key that a ledger keeps, in people's words.

Of the program that is its StableHLO text, whose lines are shown, short enough to read. Of the
accelerator JAX hashes eight bytes; a ledger keeps what they are made of: the devices of the
process, its number, and on CPUs the processor with its features. Compile options it keeps field by
field.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.cache.entry import Machine
from harness.records.units import some

MOST_FEATURES = 8
"""So many features are named; the rest are counted."""


@dataclass(frozen=True)
class Accelerator:
    """What a ledger keeps of the devices that a program was compiled for.

    Attributes:
        local: The devices of the process by kind, such as `2 cpu`.
        devices: How many there are in all processes.
        processes: How many processes there are; 0 where an older ledger does not tell.
        processor: The processor as LLVM names it, such as `znver5`; empty where it is not told.
    """

    local: str
    devices: int
    processes: int
    process: int
    processor: str
    features: frozenset[str]

    @staticmethod
    def read(text: str) -> Accelerator:
        """Read the part of a ledger."""
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

    def __str__(self) -> str:
        words = [self.local, f"process {self.process}"]
        words += [self.processor, f"{len(self.features)} features"] if self.processor else []
        return ", ".join(words)


def accelerator_changes(a: str, b: str) -> tuple[str, ...]:
    """Say what differs between what two ledgers keep of their accelerators; nothing if unknown."""
    old, new = Accelerator.read(a), Accelerator.read(b)
    both = new.processes if old.processes else 0  # an older ledger does not tell
    alike = old.local == new.local
    compared = (
        ("the devices of the process", old.local, new.local, True),
        ("another process of the run", old.process, new.process, True),
        ("the processes of the run", old.processes, new.processes, both),
        ("the devices of all processes", old.devices, new.devices, alike),
        ("the processor", old.processor, new.processor, True),
    )
    said = [f"{what}, {x} became {y}" for what, x, y, is_known in compared if is_known and x != y]
    lost, gained = sorted(old.features - new.features), sorted(new.features - old.features)
    said += [
        f"the processor's features, {how} {some(names, MOST_FEATURES)}"
        for how, names in (("without", lost), ("with", gained))
        if names
    ]
    return tuple(said)


# Compile options

MOST_CHARACTERS = 60
"""A longer value is left to the lines."""

WORDS = {
    "allow_spmd_sharding_propagation_to_parameters": "XLA may not choose an argument's sharding "
    "any more, or may again",
    "allow_spmd_sharding_propagation_to_output": "XLA may not choose a result's sharding any more, "
    "or may again",
    "device_assignment": "the devices that it runs on",
    "num_partitions": "the number of partitions",
    "num_replicas": "the number of replicas",
    "use_shardy_partitioner": "which partitioner is used, Shardy or GSPMD",
    "use_spmd_partitioning": "whether it is partitioned",
    "exec_time_optimization_effort": "the effort for a short run",
    "memory_fitting_effort": "the effort to fit into memory",
    "optimization_level": "the level of optimization",
    "xla_backend_optimization_level": "the level of optimization",
    "env_option_overrides": "the compiler options of jax.jit",
    "xla_detailed_logging": "whether XLA logs in detail (jax_compiler_detailed_logging_min_ops)",
}
"""Fields whose names a user does not know; others are called by their own."""


@dataclass(frozen=True)
class OptionChange:
    """One field that differs.

    Attributes:
        field: XLA's name of it, without where it lies.
        cause: What it means, with both values where they are short; empty for what only follows.
    """

    field: str
    cause: str
    line: str


def option_changes(a: str, b: str) -> tuple[OptionChange, ...]:
    """Return the fields that differ between what two ledgers keep of their compile options."""
    before, after = json.loads(a), json.loads(b)
    found = []
    for name in {**before, **after}:
        old, new = (told.get(name, "(not set)") for told in (before, after))
        if old == new:
            continue
        field = name.rpartition(".")[2]
        cause = WORDS.get(field, field)
        if "may not" in cause:  # a value for each argument: their number says nothing of its own
            cause = cause if old.count(",") == new.count(",") else ""
        elif max(len(old), len(new)) <= MOST_CHARACTERS:
            cause = f"{cause}, {old} became {new}"
        found.append(OptionChange(field, cause, f"{name}: {old} -> {new}"))
    return tuple(found)


# The program

ELIDED = "__elided__"


@dataclass(frozen=True)
class Rule:
    """A cause, and what it leaves in the text: its matches are all that it may explain."""

    cause: str
    pattern: re.Pattern[str]
    bearer: str = ""
    """The operation that bears it: named only where both texts have as many of those."""

    def explains(self, a: str, b: str) -> bool:
        """Whether two texts differ in it."""
        comparable = not self.bearer or a.count(self.bearer) == b.count(self.bearer)
        return comparable and self.pattern.findall(a) != self.pattern.findall(b)


_DIMENSIONS = "the dimensions that an operation goes over"

_NAME = re.compile(r"(?<=^module @)\S+", re.MULTILINE)

RULES = (
    Rule("the function was renamed", _NAME),
    Rule(
        "the output pytree has other keys or another structure (jax.result_info)",
        re.compile(r'jax\.result_info = "(?:[^"\\]|\\.)*"'),
    ),
    Rule(
        "donation of an argument",
        re.compile(r"(?:tf\.aliasing_output = \d+ : i32|jax\.buffer_donor = (?:true|false))"),
    ),
    Rule(
        "the sharding of an argument or result (committed or not, another device or mesh)",
        re.compile(
            r'mhlo\.sharding = "(?:[^"\\]|\\.)*"|sdy\.sharding = #sdy\.sharding<[^>]*>+'
            r"|^\s*sdy\.mesh .*$|mhlo\.num_(?:partitions|replicas) = \d+ : i32",
            re.MULTILINE,
        ),
    ),
    Rule(
        "matmul precision",
        re.compile(r"precision = \[[^\]]*\]|algorithm = <[^>]*>"),
        bearer="stablehlo.dot_general",
    ),
    Rule(
        "a constant's value", re.compile(r'dense<(?:"[^"]*"|[^>]*)>'), bearer="stablehlo.constant"
    ),
    Rule("layouts of arguments or results", re.compile(r'mhlo\.layout_mode = "[^"]*"')),
    Rule(
        _DIMENSIONS,
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


def program_causes(a: str, b: str) -> tuple[str, ...]:
    """Return the causes that the difference of two texts shows, and whether others remain."""
    ids, a, b = _without_ids(a, b)
    keys, a, b = _without_key_types(a, b)
    causes = (*ids, *keys)
    if causes and _lines(a) == _lines(b):
        return causes
    if _lines(a) == _lines(b):
        return (ORDER,)
    return (*causes, *_other_causes(a, b))


ORDER = (
    "the same operations in another order, as of a sum or of a loop over a set, which has another "
    "order in each process (PYTHONHASHSEED=0, or sorted(...), gives it one)"
)

_ID = re.compile(r'dense<(?:"[^"]*"|[^>]*)>|tensor<[^>]*>|(0x[0-9a-fA-F]{8,}|(?<![\d.])\d{10,})')
"""What Python's id() and addresses look like, outside of constants and types."""


def _without_ids(a: str, b: str) -> tuple[tuple[str, ...], str, str]:
    """Return the cause where numbers like Python's ids differ, and both texts without them."""
    ids_a, ids_b = ([one for one in _ID.findall(text) if one] for text in (a, b))
    if ids_a == ids_b or len(ids_a) != len(ids_b):
        return (), a, b
    old, new = next((x, y) for x, y in zip(ids_a, ids_b, strict=True) if x != y)
    cause = (
        f"a Python id or an address in the program, {old} became {new}: this module is stored by "
        "each process and hits in none"
    )
    a, b = (_ID.sub(lambda one: "" if one[1] else one[0], text) for text in (a, b))
    return (cause,), a, b


_EMPTY_MESH = re.compile(r"^\s*sdy\.mesh @empty_mesh = .*\n", re.MULTILINE)
_OF_A_KEY = re.compile(
    r"^\s*(%\w+) = sdy\.sharding_constraint (%\w+) <@empty_mesh, .*> : "
    r"tensor<(?:\d+x)*[24]xui32>\n",
    re.MULTILINE,
)
"""What JAX puts where a typed key becomes its numbers (jax 0.10 to 0.12)."""


def _without_key_types(a: str, b: str) -> tuple[tuple[str, ...], str, str]:
    """Return the cause where one program takes typed keys of random numbers, and both without."""
    typed = [len(_OF_A_KEY.findall(text)) for text in (a, b)]
    if typed[0] == typed[1]:
        return (), a, b
    old, new = "a raw key (jax.random.PRNGKey)", "a typed key (jax.random.key)"
    if typed[0] > typed[1]:
        old, new = new, old
    a, b = (_EMPTY_MESH.sub("", _OF_A_KEY.sub("", text)) for text in (a, b))
    return (f"the kind of a random key, {old} became {new}",), a, b


_VALUE = re.compile(r"%\w+(?:#\d+)?(?::\d+)?")


def _lines(text: str) -> Counter[str]:
    """Return the lines of a text, whatever their order and the names of their values."""
    return Counter(_VALUE.sub("%", text).splitlines())


def _other_causes(a: str, b: str) -> tuple[str, ...]:
    types_a, types_b = _argument_types(a), _argument_types(b)
    if types_a != types_b:
        # Every line follows from the shapes; what else differs says nothing of its own.
        shapes = f"shapes or dtypes of the arguments, {types_a} became {types_b}"
        return (*_random(a, b), shapes)
    shown = tuple(rule.cause for rule in RULES if rule.explains(a, b))
    bare_a, bare_b = a, b
    for rule in RULES:
        bare_a, bare_b = rule.pattern.sub("", bare_a), rule.pattern.sub("", bare_b)
    # Taking an attribute away leaves the punctuation around it.
    if shown and _punctuation(bare_a) == _punctuation(bare_b):
        return shown
    return (*(cause for cause in shown if cause != _DIMENSIONS), *_operations(a, b))


def _operations(a: str, b: str) -> tuple[str, ...]:
    special = _random(a, b)
    if _BARRIER.findall(a) != _BARRIER.findall(b):
        special += ("rematerialisation (jax.checkpoint): what the backward pass computes again",)
    if _CONSTRAINT.findall(a) != _CONSTRAINT.findall(b):
        special += ("the sharding of a value inside (with_sharding_constraint)",)
    calls_a, calls_b = set(_CALLED.findall(a)), set(_CALLED.findall(b))
    if calls_a != calls_b:
        both = (", ".join(sorted(calls)) or "none" for calls in (calls_a, calls_b))
        special += ("the library that is called, {} became {}".format(*both),)
    if not special and Counter(_OPERATION.findall(a)) == Counter(_OPERATION.findall(b)):
        special = (ORDER,)
    return special or ("the operations of the program",)


def _random(a: str, b: str) -> tuple[str, ...]:
    old, new = (next((name for name, sign in _RANDOM if sign in text), "") for text in (a, b))
    if old == new or not old or not new:
        return ()
    return (f"how random numbers are made (PRNG), {old} became {new}",)


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
