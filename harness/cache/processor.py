"""Which instructions of a processor an executable needs, and this machine does not have."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")

_COMPARABLE = re.compile(r"avx(2|512\w*|vnni\w*|ifma|ne\w*)?|amx\w*|fma|f16c|vaes|vpclmulqdq")
"""Names that LLVM and Linux share but for their dashes; others are spelled in too many ways."""


def lacking(features: Iterable[str]) -> tuple[str, ...]:
    """The features, as LLVM names them, that this machine's processor surely lacks.

    None where the system does not say what it has, as outside of Linux on x86.
    """
    here = _here()
    return tuple(
        name
        for name in features
        if here and _COMPARABLE.fullmatch(plain(name)) and plain(name) not in here
    )


def plain(name: str) -> str:
    """A feature's name as LLVM (`avx512vnni`, `amx-int8`) and Linux (`avx512_vnni`) share it."""
    return re.sub(r"[-_.]", "", name)


@functools.cache
def _here() -> frozenset[str]:
    try:
        text = CPUINFO.read_text()
    except OSError:
        return frozenset()
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return frozenset(map(plain, flags[1].split())) if flags else frozenset()
