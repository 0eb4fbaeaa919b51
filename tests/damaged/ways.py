"""Ways in which a file is damaged, by chance or on purpose."""

from __future__ import annotations

import copy
import functools
import json
import os
import random
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

GIB = 1 << 30
_PART = bytes(1 << 24)
_PARTS = 64


def flipped(data: bytes, rng: random.Random) -> bytes:
    """One bit."""
    changed = bytearray(data)
    position = rng.randrange(len(data) * 8)
    changed[position // 8] ^= 1 << position % 8
    return bytes(changed)


def _spliced(
    data: bytes, rng: random.Random, lengths: tuple[int, ...], piece: Callable[[int], bytes]
) -> bytes:
    """Something else is in the place of a part, which has one of these lengths."""
    begin = rng.randrange(len(data))
    length = min(rng.choice(lengths), len(data) - begin)
    return data[:begin] + piece(length) + data[begin + length :]


def _doubled(data: bytes, rng: random.Random) -> bytes:
    begin, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[begin:]


def _digit(data: bytes, rng: random.Random) -> bytes:
    """One digit is another."""
    places = [found.start() for found in re.finditer(rb"\d", data)]
    if not places:
        return flipped(data, rng)
    place = rng.choice(places)
    return data[:place] + b"%d" % rng.randrange(10) + data[place + 1 :]


_BETWEEN = (b"\x00", b"\n", b"\x1b[31m", b"\xff\xfe", b'"', b"{", b"9", b"NaN,", b"\r")
_OTHERWISE: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: data.decode("latin-1").encode("utf-16"),
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data.replace(b"\n", b"\r"),
    lambda data: data.decode("latin-1").encode("utf-8"),
)
_FOREIGN = (
    *(b"", b"\n", b"\x00" * 4096, b"[" * 200_000, b'{"a":' * 100_000, b"null", b"[]", b"{}"),
    *(b'"text"', b"1e999", b"-", b"\xff" * 100, b"# a text\n" * 50),
)

BY_CHANCE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flipped": flipped,
    "flipped often": lambda data, rng: functools.reduce(
        lambda changed, _: flipped(changed, rng), range(rng.choice((2, 3, 8, 64))), data
    ),
    "cut": lambda data, rng: data[: rng.randrange(len(data))],
    "beheaded": lambda data, rng: data[rng.randrange(1, len(data)) :],
    # As after a power failure.
    "holed": lambda data, rng: _spliced(data, rng, (1, 16, 512, 4096), bytes),
    "scrambled": lambda data, rng: _spliced(data, rng, (1, 4, 64, 512), rng.randbytes),
    "inserted": lambda data, rng: _spliced(data, rng, (0,), lambda _: rng.choice(_BETWEEN)),
    "doubled": _doubled,
    "digit": _digit,
    "encoded otherwise": lambda data, rng: rng.choice(_OTHERWISE)(data),
    "foreign": lambda data, rng: rng.choice((*_FOREIGN, rng.randbytes(2000))),
}

DEEP = "DEEP"
HOSTILE: tuple[Any, ...] = (
    *(2**63 - 1, 2**63, 2**64, -(2**63), -1, 0, 10**400, 1e308, -1e308, 5e-324, 1.5),
    *(None, True, "", "x", [], {}, [[]], [None], ["x"], {"x": None}, {"": {}}),
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\rb", "a\nb", "\x00", "\u202eabc", "\x9b31m"),
    *("../../evil", "/etc/passwd", "..", ".", "a/b", "C:\\x", "~", "%s%n", "{0}", "x" * 100_000),
    *("nan", "inf", "-0", "1e999", "\ud800", "2026-99-99", [1e308] * 50, list(range(1000))),
    *([-1.0], [0.0], [10**300], [True], [2**70], ["1"], {"a": [1]}, DEEP),
)
"""Values that a file from elsewhere may have in any place."""


def twisted(document: Any, rng: random.Random) -> Any:
    """A document in which one value, or more, is hostile, missing, or of another name."""
    made = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        inner, name = _somewhere(made, rng)
        hostile = copy.deepcopy(rng.choice(HOSTILE))
        if inner is None:
            return hostile
        what = rng.random()
        if what < 0.75:
            inner[name] = hostile
        elif what < 0.85:
            del inner[name]
        elif isinstance(inner, dict):
            value = inner.pop(name)
            inner[rng.choice([one for one in HOSTILE if isinstance(one, str)])] = value
        else:
            inner.append(hostile)
    return made


def _somewhere(document: Any, rng: random.Random) -> tuple[Any, Any]:
    inner, name, here = None, None, document
    while isinstance(here, dict | list) and here:
        inner = here
        name = rng.choice(list(here)) if isinstance(here, dict) else rng.randrange(len(here))
        here = inner[name]
        if rng.random() < 0.3:
            break
    return inner, name


def text_of(document: Any, rng: random.Random) -> bytes:
    """A document as JSON, in which what JSON has no word for stands as Python writes it."""
    text = json.dumps(document, ensure_ascii=rng.random() < 0.5, separators=(",", ":"))
    depth = rng.choice((1_000, 100_000))
    text = text.replace(f'"{DEEP}"', "[" * depth + "]" * depth)
    if rng.random() < 0.05:
        text = text.replace("0", rng.choice(("NaN", "Infinity", "-Infinity", "01", "0x1")), 1)
    return text.encode("utf-8", "surrogatepass")


def sealed(text: bytes) -> bytes:
    """JSON with the checksum that a writer would have given it."""
    text = text.rstrip()
    if not text.endswith(b"}"):
        return text
    return text[:-1] + b',"crc32":"%08x"}' % zlib.crc32(text)


@functools.cache
def _bomb(bits: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return b"".join(packer.compress(_PART) for _ in range(_PARTS)) + packer.flush()


def blow_up(path: Path, healthy: bytes, rng: random.Random) -> str:
    """Make a file far larger than it is, or than what it unpacks to; return in which way."""
    bits = {b"\x1f": 31, b"\x78": 15}.get(healthy[:1])
    if bits and rng.random() < 0.7:
        path.write_bytes(_bomb(bits))
        return "bomb"
    way = rng.choice(("sparse", "long line"))  # zeros, that take no room
    if way == "sparse":
        path.write_bytes(b"")
    os.truncate(path, path.stat().st_size + 2 * GIB)
    return way
