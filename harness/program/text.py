"""The text of a program without what changes from place to place, and its identity."""

from __future__ import annotations

import hashlib
import re
from typing import Any

METADATA = re.compile(r',\s*metadata=\{[^"}]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"}]*)*\}')
_TABLES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*", re.M)

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_INSIDE = rf'(?:[^()"]|{_QUOTED})*'
for _ in range(3):  # locations nest: loc(callsite("f" at "g"("file.py":1:2)))
    _INSIDE = rf'(?:[^()"]|{_QUOTED}|\({_INSIDE}\))*'
_LOCATION = re.compile(rf"[ \t]*\bloc\({_INSIDE}\)")
_LOCATION_LINE = re.compile(r"^#loc\d*(?: = .*)?\n?", re.M)

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
