"""Names that depend on what an instruction does and on nothing that stands far away from it.

XLA and MLIR number what they name. One more instruction at the top renumbers all that follow, and
a comparison line by line would then show the whole program as changed.
"""

from __future__ import annotations

import re
from collections import Counter

from harness.program import text as texts

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
        return _hlo(texts.normalise(text))
    if start.startswith(("module", "#loc")):
        return _stablehlo(texts.normalise_stablehlo(text))
    return texts.normalise_jaxpr(text)


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
