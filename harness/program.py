"""What was built: the identity of an optimised program."""

from __future__ import annotations

import hashlib
import re
from typing import Any

_METADATA = re.compile(r',\s*metadata=\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}')
_TABLES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*", re.M)


def normalise(hlo: str) -> str:
    """Strip source locations from the text of an HLO module, so that equal programs are equal.

    jax 0.11 and later print tables of files and stack frames before the computations.
    """
    return re.sub(r"\n\s*\n+", "\n", _TABLES.sub("", _METADATA.sub("", hlo)))


def fingerprint(compiled: Any) -> str:
    """Return 16 hexadecimal digits of the optimised HLO without metadata, or "" if there is none.

    `compiled` is a `jax.stages.Compiled`.
    """
    text = compiled.as_text()
    return hashlib.sha256(normalise(text).encode()).hexdigest()[:16] if text else ""
