"""The text of a program without what changes from place to place, and its identity.

XLA and MLIR number what they name. One more instruction at the top renumbers all that follow, and a
comparison line by line would then show the whole program as changed: canonical names depend on what
an instruction does and on nothing that stands far away from it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
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
    found = "".join(sorted(_VALUES.findall(stablehlo)))
    return hashlib.sha256(found.encode()).hexdigest()[:16] if found else ""


# --- canonical names ------------------------------------------------------------------------------

_HLO_NAME = re.compile(r"%([A-Za-z_][\w.\-]*)")
_HLO_HEADER = re.compile(r"^(?:ENTRY )?%([\w.\-]+) \((.*)\) -> .*\{$")
_HLO_PARAMETER = re.compile(r"(?<![\w.\-%])([A-Za-z_][\w.\-]*)(?=: )")
_NUMBER = re.compile(r"[._]\d+(?![A-Za-z0-9])")

_RESULTS = re.compile(r'^\s*(%[\w$.\-]+)(?::\d+)? = "?([\w.]+)')
_VALUE = re.compile(r"%[\w$.\-]+")


def canonical(text: str) -> str:
    """Return a program's text normalised and with its names made canonical.

    `text` is of an HLO module, a StableHLO module, or a jaxpr. In HLO a name loses its numbers and
    gets a new one that counts equal names in order of appearance, those of instructions in each
    computation by itself; in StableHLO a value is named after the operation that makes it, in each
    function by itself. A jaxpr's names already are in
    order of appearance, and stay.
    """
    start = text.lstrip()
    if start.startswith("HloModule"):
        return _hlo(normalise(text))
    if start.startswith(("module", "#loc")):
        return _stablehlo(normalise_stablehlo(text))
    return normalise_jaxpr(text)


class _Names:
    """New names for old ones: what they are derived from, and a number from the second on."""

    def __init__(self) -> None:
        self.new: dict[str, str] = {}
        self.taken: Counter[str] = Counter()

    def name(self, old: str, stem: str) -> str:
        if old not in self.new:
            number = self.taken[stem]
            self.taken[stem] += 1
            self.new[old] = f"{stem}.{number}" if number else stem
        return self.new[old]


def _hlo(text: str) -> str:
    lines = text.splitlines()
    headers = [_HLO_HEADER.match(line) for line in lines]
    known = {header[1] for header in headers if header}
    computations, instructions = _Names(), _Names()

    def renamed(old: str) -> str:
        names = computations if old in known else instructions
        return names.name(old, _NUMBER.sub("", old))

    for number, header in enumerate(headers):
        if header:  # its parameters stand there without the sign that names have elsewhere
            instructions = _Names()  # no computation can name an instruction of another
            begin, end = header.span(2)
            parameters = _HLO_PARAMETER.sub(lambda m: renamed(m[1]), header[2])
            lines[number] = lines[number][:begin] + parameters + lines[number][end:]
        lines[number] = _HLO_NAME.sub(lambda m: "%" + renamed(m[1]), lines[number])
    return "\n".join(lines) + "\n"


def _stablehlo(text: str) -> str:
    names = _Names()

    def renamed(value: re.Match[str]) -> str:
        return names.new.get(value[0], value[0])

    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith("func.func"):
            names = _Names()
        made = _RESULTS.match(line)
        if made:
            names.name(made[1], "%" + made[2].rpartition(".")[2])
        lines.append(_VALUE.sub(renamed, line))
    return "\n".join(lines) + "\n"
