"""Ways in which a file is damaged, by chance or on purpose."""

from __future__ import annotations

import copy
import json
import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

GIB = 1 << 30


def flipped(data: bytes, rng: random.Random) -> bytes:
    """One bit."""
    changed = bytearray(data)
    position = rng.randrange(len(data) * 8)
    changed[position // 8] ^= 1 << position % 8
    return bytes(changed)


def flipped_often(data: bytes, rng: random.Random) -> bytes:
    """Some bits."""
    for _ in range(rng.choice((2, 3, 8, 64))):
        data = flipped(data, rng)
    return data


def cut(data: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data))]


def beheaded(data: bytes, rng: random.Random) -> bytes:
    """The beginning is missing."""
    return data[rng.randrange(1, len(data)) :]


def holed(data: bytes, rng: random.Random) -> bytes:
    """A part is zeros, as after a power failure."""
    begin = rng.randrange(len(data))
    length = min(rng.choice((1, 16, 512, 4096)), len(data) - begin)
    return data[:begin] + bytes(length) + data[begin + length :]


def scrambled(data: bytes, rng: random.Random) -> bytes:
    """A part is noise."""
    begin = rng.randrange(len(data))
    length = min(rng.choice((1, 4, 64, 512)), len(data) - begin)
    return data[:begin] + rng.randbytes(length) + data[begin + length :]


def inserted(data: bytes, rng: random.Random) -> bytes:
    """Something stands in between."""
    begin = rng.randrange(len(data) + 1)
    extra = rng.choice((b"\x00", b"\n", b"\x1b[31m", b"\xff\xfe", b'"', b"{", b"9", b"NaN,", b"\r"))
    return data[:begin] + extra + data[begin:]


def doubled(data: bytes, rng: random.Random) -> bytes:
    """A part is there twice."""
    begin, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[begin:]


def digit(data: bytes, rng: random.Random) -> bytes:
    """One digit is another."""
    places = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return flipped(data, rng)
    place = rng.choice(places)
    return data[:place] + b"%d" % rng.randrange(10) + data[place + 1 :]


def encoded_otherwise(data: bytes, rng: random.Random) -> bytes:
    """Another encoding, or other ends of lines."""
    text = data.decode("latin-1")
    return rng.choice(
        (
            lambda: text.encode("utf-16"),
            lambda: b"\xef\xbb\xbf" + data,
            lambda: data.replace(b"\n", b"\r\n"),
            lambda: data.replace(b"\n", b"\r"),
            lambda: text.encode("utf-8"),
        )
    )()


def foreign(data: bytes, rng: random.Random) -> bytes:
    """Something else altogether."""
    return rng.choice(
        (
            b"",
            b"\n",
            b"\x00" * 4096,
            b"[" * 200_000,
            b'{"a":' * 100_000,
            b"null",
            b"[]",
            b"{}",
            b'"text"',
            b"1e999",
            b"-",
            b"\xff" * 100,
            b"# a text\n" * 50,
            rng.randbytes(2000),
        )
    )


BY_CHANCE: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(flipped, flipped_often, cut, beheaded, holed, scrambled, inserted, doubled, digit),
    *(encoded_otherwise, foreign),
)

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
    made = json.loads(json.dumps(document))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        inner, name = _somewhere(made, rng)
        if inner is None:
            return _hostile(rng)
        what = rng.random()
        if what < 0.75:
            inner[name] = _hostile(rng)
        elif what < 0.85:
            del inner[name]
        elif isinstance(inner, dict):
            value = inner.pop(name)
            inner[str(rng.choice([one for one in HOSTILE if isinstance(one, str)]))] = value
        else:
            inner.append(_hostile(rng))
    return made


def _hostile(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(HOSTILE))


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


def sparse(path: Path) -> None:
    """Zeros, gigabytes of them, that take no room."""
    with path.open("wb") as file:
        file.truncate(2 * GIB)


def long_line(path: Path) -> None:
    """A healthy file that goes on with a line of zeros."""
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + 2 * GIB)


_bombs: dict[str, bytes] = {}


def bomb(kind: str) -> bytes:
    """A gigabyte of zeros, compressed."""
    if kind not in _bombs:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31 if kind == "gzip" else 15)
        part = bytes(1 << 24)
        _bombs[kind] = b"".join(packer.compress(part) for _ in range(64)) + packer.flush()
    return _bombs[kind]


def zip_bomb(path: Path, healthy: bytes) -> None:
    """An archive whose manifest, or entry, is a gigabyte of zeros."""
    path.write_bytes(healthy)
    with zipfile.ZipFile(path) as whole:
        names = whole.namelist()
    part = bytes(1 << 24)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as whole:
        for name in names:
            with whole.open(name, "w") as file:
                for _ in range(64):
                    file.write(part)


def blow_up(path: Path, healthy: bytes, rng: random.Random) -> str:
    """Make a file far larger than it is, or than what it unpacks to; return in which way."""
    if healthy[:2] == b"\x1f\x8b" or healthy[:1] == b"\x78":
        if rng.random() < 0.7:
            path.write_bytes(bomb("gzip" if healthy[:1] == b"\x1f" else "zlib"))
            return "bomb"
    elif healthy[:2] == b"PK" and rng.random() < 0.7:
        zip_bomb(path, healthy)
        return "zip bomb"
    way = rng.choice((sparse, long_line))
    way(path)
    return way.__name__
