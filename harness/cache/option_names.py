"""The names of XLA's options, by their numbers: read from the installed jaxlib, not imported."""

from __future__ import annotations

import functools
import importlib.util
import mmap
import re
from pathlib import Path

_LIBRARY = "libjax_common.so"
_ANCHOR = b"xla_cpu_enable_fast_math\x18"
"""Begins the description of one of them; those of the others are near."""
_NEAR_BYTES = 200_000

_FIELD = re.compile(rb"\n(.)(xla_\w+)\x18([\x80-\xff]?[\x00-\x7f]) ", re.DOTALL)
"""A field of a message, as a library describes its protocol buffers: its name, then its number."""

_FIRST = 31
"""Numbers below are fields of other messages."""


def option_name(number: int) -> str:
    """The name of an option, such as `xla_cpu_enable_fast_math`; empty where none is known."""
    return _names().get(number, "")


@functools.cache
def _names() -> dict[int, str]:
    spec = importlib.util.find_spec("jaxlib")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    try:
        if folder is None:
            return {}
        with (folder / _LIBRARY).open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            at = data.find(_ANCHOR)
            near = data[max(0, at - _NEAR_BYTES) : at + _NEAR_BYTES] if at >= 0 else b""
            data.close()
    except (OSError, ValueError):  # another build of jaxlib
        return {}
    numbers = dict[int, str]()
    for size, name, number in _FIELD.findall(near):
        low, high = number[0] & 0x7F, number[1] if len(number) > 1 else 0
        if size[0] == len(name) and low | high << 7 >= _FIRST:
            numbers.setdefault(low | high << 7, name.decode())
    return numbers
