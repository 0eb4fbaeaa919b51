"""Problems to plant in healthy cache directories, and the findings that the doctor is to have."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jax._src.compilation_cache import compress_executable, decompress_executable

from harness.cache.executable import lacking_features
from harness.cache.finding import Severity
from harness.jaxhooks import jax_names
from tests.cache.filled import backdate, entry_of

MOVED = ("empty", "torn", "garbage", "wrong-module", "unloadable")
"""What `--repair` moves."""


@dataclass(frozen=True)
class Plant:
    """One problem of the entry of `first`, or of the whole directory.

    Attributes:
        name: What is done.
        check: Which check is to find it.
        how: Does it, to the directory.
        facts: What it is to see, of its facts.
        severity: How bad it is to be.
        whole: Whether the directory has it, and no entry.
        entries: How many entries have it, else.
    """

    name: str
    check: str
    how: Callable[[Path], object]
    facts: dict[str, Any] = field(default_factory=dict)
    severity: Severity = "problem"
    whole: bool = False
    entries: int = 1


def _first(cache: Path) -> Path:
    return entry_of(cache, "jit_first")


def _as_bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Change the file of an entry."""
    return lambda cache: _first(cache).write_bytes(change(_first(cache).read_bytes()))


def _inside(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Change what is packed in an entry."""
    return _as_bytes(lambda data: compress_executable(change(decompress_executable(data))))


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


def _without_code(data: bytes) -> bytes:
    """Overwrite the start of the object code."""
    at = data.index(b"\x7fELF")
    return data[:at] + bytes(64) + data[at + 64 :]


def _other(cache: Path, module: str) -> Path:
    """An entry of a module that may have several."""
    return min(cache.glob(f"{module}-*-cache"))


def _over(source: str, target: str) -> Callable[[Path], object]:
    return lambda cache: entry_of(cache, target).write_bytes(_other(cache, source).read_bytes())


def _swap(cache: Path) -> None:
    one, other = _first(cache), _other(cache, "jit_second")
    mine = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(mine)


def _misnamed(cache: Path) -> None:
    entry = _first(cache)
    entry.rename(entry.with_name(entry.name.replace("jit_first", "jit_other")))


def _instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Put something else in an entry's place."""

    def how(cache: Path) -> None:
        entry = _first(cache)
        entry.unlink()
        make(entry)

    return how


def _claiming(kind: bytes) -> Callable[[bytes], bytes]:
    """Have an executable need an instruction of a kind that this processor lacks."""

    def change(data: bytes) -> bytes:
        off = re.findall(b",-(" + kind + rb"[\w-]+)", data)
        feature, *_ = (one for one in off if lacking_features((one.decode(),)))
        return data.replace(b"-" + feature, b"+" + feature, 1)

    return change


def _time_of_use(entry: Path, seconds: float) -> None:
    """Note when an entry was used: so many seconds from now."""
    used = entry.with_name(entry.name.removesuffix("-cache") + "-atime")
    used.write_bytes(int((time.time() + seconds) * 1e9).to_bytes(8, "little"))


def _used_tomorrow(cache: Path) -> None:
    for entry in cache.glob("jit_*-cache"):
        _time_of_use(entry, 86_400 if entry == _first(cache) else -3600)


def _orphan(cache: Path) -> None:
    for entry in cache.glob("jit_*-cache"):
        _time_of_use(entry, -3600)
    entry = _first(cache)
    entry.with_name(entry.name.removesuffix("-cache") + "-atime").unlink()


def _group(cache: Path) -> None:
    os.chown(_first(cache), 0, 4321)
    _first(cache).chmod(0o664)


def _listed(cache: Path) -> None:
    """Let a user of an access control list write to an entry, and another one read it."""
    nobody = 2**32 - 1
    named = (2, 6, 4321), (2, 4, 4322)
    entries = [(1, 6, nobody), *named, (4, 4, nobody), (16, 6, nobody), (32, 4, nobody)]
    data = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries)
    os.setxattr(_first(cache), "system.posix_acl_access", data)


EARLY = jax_names.version().startswith("0.10.")


def _fault(code: str) -> dict[str, Any]:
    return {"fault": code}


def _who(kind: str, name: str) -> dict[str, Any]:
    return {"who": kind, "name": name}


PLANTS = (
    Plant("no bytes", "empty", _as_bytes(lambda data: b""), _fault("no-bytes")),
    Plant("one byte", "torn", _as_bytes(lambda data: data[:1]), _fault("stream-stops")),
    Plant("half", "torn", _as_bytes(lambda data: data[: len(data) // 2]), _fault("stream-stops")),
    Plant("all but the last byte", "torn", _as_bytes(lambda data: data[:-1]),
          _fault("stream-stops")),
    Plant("zeros", "garbage", _as_bytes(lambda data: bytes(len(data))), _fault("not-compressed")),
    Plant("random bytes", "garbage", _as_bytes(lambda data: b"\x01" + os.urandom(len(data)))),
    Plant("a page of HTML", "garbage", _as_bytes(lambda data: b"<html>404</html>"),
          {"fault": "not-compressed", "detail": "3c 68 74 6d"}),
    Plant("a flipped bit", "garbage", _as_bytes(_flip), _fault("stream-damaged")),
    Plant("zeros at the end", "torn", _as_bytes(lambda data: data[:-900] + bytes(900))),
    Plant("not compressed", "garbage", _as_bytes(decompress_executable)),
    Plant("the time alone", "garbage", _inside(lambda data: data[:4]),
          {"fault": "no-executable", "detail": "4"}),
    Plant("another program copied over it", "wrong-module", _over("jit_second", "jit_first"),
          {"inside": ["jit_second"]}, "unusable"),
    Plant("two programs swapped", "wrong-module", _swap, severity="unusable",
          entries=2),
    Plant("renamed", "wrong-module", _misnamed, severity="unusable"),
    Plant("half an executable", "torn", _inside(lambda data: data[: len(data) // 2]),
          _fault("executable-stops")),
    Plant("an executable's head", "torn", _inside(lambda data: data[:1500])),
    Plant("object code overwritten", "unloadable", _inside(_without_code), severity="note"),
    Plant("an executable's tail lost", "unloadable", _inside(lambda data: data[:-40])),
    Plant("needs another avx", "foreign-processor", _inside(_claiming(b"avx"))),
    Plant("needs another amx", "foreign-processor", _inside(_claiming(b"amx"))),
    Plant("entry of another", "others-can-write", lambda cache: os.chown(_first(cache), 4321, 0),
          _who("owner", "user 4321")),
    Plant("directory of another", "others-can-write", lambda cache: os.chown(cache, 4321, 0),
          _who("owner", "user 4321"), whole=True),
    Plant("entry of a group", "others-can-write", _group, _who("group", "group 4321")),
    Plant("entry of a user of its list", "others-can-write", _listed, _who("user", "user 4321")),
    Plant("entry of everyone", "others-can-write", lambda cache: _first(cache).chmod(0o666),
          _who("everyone", "everyone"), "unusable"),
    Plant("directory of everyone", "others-can-write", lambda cache: cache.chmod(0o777),
          severity="unusable", whole=True),
    Plant("parent of everyone", "others-can-write", lambda cache: cache.parent.chmod(0o777),
          severity="unusable", whole=True),
    Plant("a link to nowhere", "unreadable", _instead(lambda entry: entry.symlink_to("nowhere"))),
    Plant("a folder", "unreadable", _instead(Path.mkdir)),
    Plant("a pipe", "unreadable", _instead(os.mkfifo)),
    Plant("used tomorrow", "future", _used_tomorrow),
    Plant("no time of use", "orphaned", _orphan, severity="problem" if EARLY else "note"),
)  # fmt: skip
"""Done to directories with and without a size cap and to one of many programs."""


def plant(one: Plant, cache: Path) -> str:
    """Plant a problem in a directory; return the name of the entry that has it."""
    name = "" if one.whole else _first(cache).name.removesuffix("-cache")
    one.how(cache)
    if one.name == "renamed":
        name = name.replace("jit_first", "jit_other")
    if not name or (cache / f"{name}-cache").is_file():
        backdate(cache)
    return name
