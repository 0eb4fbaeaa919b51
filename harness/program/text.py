"""The text of a program without what changes from place to place, and its identity.

XLA and MLIR number what they name. One more instruction at the top renumbers all that follow, and a
comparison line by line would then show the whole program as changed: canonical names depend on what
an instruction does and on nothing that stands far away from it.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

METADATA = re.compile(r',\s*metadata=\{[^"}]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"}]*)*\}')
TARGET = re.compile(r'\bcustom_call_target="((?:[^"\\]|\\.)*)"')
_TABLES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*", re.M)

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_INSIDE = rf'(?:[^()"]|{_QUOTED})*'
for _ in range(3):  # locations nest: loc(callsite("f" at "g"("file.py":1:2)))
    _INSIDE = rf'(?:[^()"]|{_QUOTED}|\({_INSIDE}\))*'
_LOCATION = re.compile(rf"[ \t]*\bloc\({_INSIDE}\)")
_LOCATION_LINE = re.compile(r"^#loc\d*(?: = .*)?\n?", re.M)

_VALUES = re.compile(r'(?<=stablehlo.constant dense<)[\["][^>]*')
_ADDRESS = re.compile(r"\b0x[0-9a-fA-FX]+\b")  # JAX itself writes some of them as 0xXXXX
_SOURCE = re.compile(r"[ \t]+#(?: .*)?$", re.M)


def normalise(hlo: str) -> str:
    """Strip source locations from the text of an HLO module, so that equal programs are equal.

    jax 0.11 and later print tables of files and stack frames before the computations.
    """
    return re.sub(r"\n\s*\n+", "\n", _TABLES.sub("", METADATA.sub("", hlo)))


def normalise_stablehlo(text: str) -> str:
    """Strip locations from the text of a StableHLO module, those inside it and their table."""
    return _LOCATION.sub("", _LOCATION_LINE.sub("", text)).strip() + "\n"


def normalise_jaxpr(text: str) -> str:
    """Strip source comments and memory addresses from the text of a jaxpr."""
    return _ADDRESS.sub("0x", _SOURCE.sub("", text)).strip() + "\n"


def fingerprint(compiled: Any) -> str:
    """Return 16 hexadecimal digits of the optimised HLO without metadata, or "" if there is none.

    `compiled` is a `jax.stages.Compiled`.
    """
    text = compiled.as_text()
    return hashlib.sha256(normalise(text).encode()).hexdigest()[:16] if text else ""


def constants(stablehlo: str) -> str:
    """Return 16 hexadecimal digits of the values of a module's constant arrays; "" without any.

    The text of optimised HLO leaves out those of more than ten elements, that of a jaxpr all.
    """
    literals = "".join(sorted(_VALUES.findall(stablehlo)))
    return hashlib.sha256(literals.encode()).hexdigest()[:16] if literals else ""


# --- canonical names ------------------------------------------------------------------------------

_PARAMETER = re.compile(r"(?<![\w.\-%])[A-Za-z_][\w.\-]*(?=: )")
"""In a computation's head, where its name stands without the sign that it has elsewhere."""
_RESULTS = re.compile(r'^\s*(%[\w$.\-]+)(?::\d+)? = "?([\w.]+)')
_VALUE = re.compile(r"%[\w$.\-]+")


def canonical(text: str) -> str:
    """Return a program's text normalised: of an HLO module, a StableHLO module, or a jaxpr.

    In StableHLO a value is named after the operation that makes it, in each function by itself.
    """
    start = text.lstrip()
    if start.startswith("HloModule"):
        return normalise(text)
    if start.startswith(("module", "#loc")):
        return _stablehlo(normalise_stablehlo(text))
    return normalise_jaxpr(text)


_MADE = re.compile(r"(?: +(?:ROOT )?(?=.* = )|(?:ENTRY )?(?=.*\{$))(%[\w$.\-]+)")
"""The name that a line of HLO or StableHLO gives: of a value, or of a computation."""


def named_as(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return canonical lines with the names of others that they match but for names.

    Else one operation more would rename all of its kind that follow. Different names stay so.
    """
    bare, other = ([*map(_without_names, lines)] for lines in (before, after))
    same: dict[int, str] = {}
    for kind, at, stop, to, end in difflib.SequenceMatcher(None, bare, other).get_opcodes():
        if stop - at == end - to:
            pairs = zip(range(to, end), before[at:stop], strict=True)
            same |= {n: one for n, one in pairs if kind == "equal" or _kind(one) == _kind(after[n])}
    taken = set(_VALUE.findall("".join(before)))
    values: dict[str, str] = {}
    computations: dict[str, str] = {}

    def name(old: re.Match[str]) -> str:
        is_called = old.start() == 0 or old.string[: old.start()].endswith(("=", "ENTRY "))
        return (computations if is_called else values).get(old[0], old[0])

    renamed = []
    for number, line in enumerate(after):
        made, is_value = _MADE.match(line), line.startswith(" ")
        if made:
            earlier = _VALUE.search(same.get(number, ""))
            new = earlier[0] if earlier else made[1] + "~" * (made[1] in taken)
            (values if is_value else computations)[made[1]] = new
        # A head goes with the names of its parameters.
        is_same = not is_value and other[number] == _without_names(same.get(number, ""))
        renamed.append(same[number] if is_same else _VALUE.sub(name, line))
    return renamed


def _kind(line: str) -> str:
    """Return the name that a line gives, without its number."""
    made = _MADE.match(line)
    return made[1].rstrip(".0123456789") if made else ""


def _without_names(line: str) -> str:
    bare = _VALUE.sub("%", line)
    return bare if line.startswith(" ") else _PARAMETER.sub("", bare)


def _stablehlo(text: str) -> str:
    names: dict[str, str] = {}
    taken: Counter[str] = Counter()

    def renamed(value: re.Match[str]) -> str:
        return names.get(value[0], value[0])

    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith("func.func"):
            names.clear()
            taken.clear()
        if made := _RESULTS.match(line):
            stem = "%" + made[2].rpartition(".")[2]
            names[made[1]] = f"{stem}.{taken[stem]}" if taken[stem] else stem
            taken[stem] += 1
        lines.append(_VALUE.sub(renamed, line))
    return "\n".join(lines) + "\n"
