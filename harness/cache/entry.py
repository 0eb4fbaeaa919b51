"""What is inside one entry, and whether JAX could read it; a little of it in memory at a time.

An entry is `compress(seconds + executable)`: four bytes, big-endian, with the compile time in whole
seconds, then what XLA serialised. jax 0.10.2 to 0.12 compress with zstd where Python has it
(`compression.zstd` of Python 3.14, or the `zstandard` package) and with zlib elsewhere.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Literal

import msgspec

from harness.targets.host import cpu_features

State = Literal["readable", "empty", "torn", "garbage", "needs-zstd", "unreadable", "unchecked"]

TIME_BYTES = 4
CHUNK_BYTES = 64 * 1024
PIECE_BYTES = 2 * 1024
"""So little is unpacked at once: zlib makes up to 2 MiB of it, zstd 128 KiB of 4 bytes."""
HEAD_BYTES = 1 << 20
"""What is kept of an executable for its header, which grows with the number of arguments."""
MOST_BYTES = 8 << 30
"""An entry that unpacks to more is left alone: reading on would serve somebody who fills disks."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

KNOWN_FORMATS = {"pjrt_ifrt 3": "jaxlib 0.10.2 to 0.12"}
"""Seen on the CPU on jaxlib 0.10.2, 0.11.2 and 0.12.0.1; the release itself is not in an entry."""


class Contents(msgspec.Struct, frozen=True):
    """What reading one entry showed.

    Attributes:
        compression: `zlib`, `zstd`, or empty if the first bytes are neither's.
        compile_whole_s: The compile time that JAX stored: whole seconds, rounded down.
        digest: A hash of the executable, without the compile time before it.
        format: The name and version of the executable's format; empty if it has no such header.
        module: The name of the compiled module inside; empty if it is not told.
        processor: The processor that XLA compiled for, such as `znver5`; empty if it is not told.
        features: What of that processor the code may use, as LLVM names it: `avx512f`.
    """

    state: State
    reason: str = ""
    compression: str = ""
    compile_whole_s: int | None = None
    unpacked_bytes: int | None = None
    digest: str = ""
    format: str = ""
    module: str = ""
    processor: str = ""
    features: tuple[str, ...] = ()


class _Bad(Exception):
    def __init__(self, state: State, reason: str) -> None:
        super().__init__(reason)
        self.state = state


def read_contents(file: BinaryIO) -> Contents:
    """Read one entry from its first byte to its last, as JAX would, and throw it away."""
    head = file.read(CHUNK_BYTES)
    if not head:
        return Contents("empty", "it has no bytes: the process that wrote it was stopped")
    compression = _compression_of(head)
    if not compression:
        return Contents("garbage", f"it begins with {head[:4].hex(' ')}: neither zlib nor zstd")
    if compression == "zstd" and len(head) < len(ZSTD_MAGIC):
        return Contents("torn", "its zstd stream stops in the middle", compression)
    library = zlib if compression == "zlib" else zstd_library()
    if library is None:
        return Contents("needs-zstd", "this Python has no zstd to unpack it with", compression)
    return _unpack(_parts(library, compression, head, file), compression)


def _unpack(parts: Iterator[bytes], compression: str) -> Contents:
    digest, size, first = hashlib.blake2b(digest_size=16), 0, b""
    machine = Machine()
    try:
        for part in parts:
            first += part[: HEAD_BYTES - len(first)]
            digest.update(part[max(0, TIME_BYTES - size) :])
            machine.look(part)
            size += len(part)
            if size > MOST_BYTES:
                raise _Bad("unchecked", f"it unpacks to more than {MOST_BYTES >> 30} GiB")
        if size <= TIME_BYTES:
            raise _Bad("garbage", f"it unpacks to {size} bytes: no executable is in it")
        if missing := _missing_bytes(first[TIME_BYTES:], size - TIME_BYTES):
            raise _Bad("torn", f"the executable in it stops {missing} bytes early")
    except _Bad as bad:
        return Contents(bad.state, str(bad), compression, unpacked_bytes=size)
    header = _header_of(first[TIME_BYTES:])
    return Contents(
        "readable",
        compression=compression,
        compile_whole_s=int.from_bytes(first[:TIME_BYTES], "big"),
        unpacked_bytes=size,
        digest=digest.hexdigest(),
        format=_format_of(header),
        module=header.get(_MODULE, b"").decode("utf-8", "replace"),
        processor=machine.processor,
        features=machine.features,
    )


def _compression_of(head: bytes) -> str:
    if head[:4] == ZSTD_MAGIC[: len(head)]:
        return "zstd"
    deflate = head[0] & 0x0F == 8 and head[0] >> 4 <= 7
    if deflate and (len(head) == 1 or int.from_bytes(head[:2], "big") % 31 == 0):
        return "zlib"
    return ""


def _parts(library: Any, compression: str, chunk: bytes, file: BinaryIO) -> Iterator[bytes]:
    if library is zlib:
        unpacker, damaged = zlib.decompressobj(), zlib.error
    else:
        unpacker, damaged = library.ZstdDecompressor(), library.ZstdError
        if hasattr(unpacker, "decompressobj"):  # the zstandard package, not Python's own
            unpacker = unpacker.decompressobj()
    try:
        while chunk:
            for start in range(0, len(chunk), PIECE_BYTES):
                yield unpacker.decompress(chunk[start : start + PIECE_BYTES])
                if unpacker.eof:
                    return
            chunk = file.read(CHUNK_BYTES)
    except damaged as error:
        raise _Bad("garbage", f"its {compression} stream is damaged: {error}") from None
    raise _Bad("torn", f"its {compression} stream stops in the middle")


def zstd_library() -> Any:
    """The library that JAX would unpack zstd with on this Python, or None without one.

    Only Python 3.14 and later have a zstd of their own; jax looks for it first, then for the
    `zstandard` package.
    """
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


_VERSION, _RUNTIME, _MODULE = 1, 2, 7
"""Fields of the header of an executable, as jaxlib 0.10.2 to 0.12.0.1 write it."""


def _header_of(executable: bytes) -> dict[int, bytes]:
    # By their numbers, of a length and a protocol buffer; a number is given as its bytes in that.
    length, start = _varint(executable, 0)
    header, found, at = executable[start : start + length], dict[int, bytes](), 0
    while at < len(header):
        tag, at = _varint(header, at)
        begin = at
        size, at = _varint(header, at)
        if tag & 7 == 0:
            found.setdefault(tag >> 3, header[begin:at])
        elif tag & 7 == 2:
            found.setdefault(tag >> 3, header[at : at + size])
            at += size
        else:
            return {}
    return found if len(header) == length == at else {}


def _format_of(header: dict[int, bytes]) -> str:
    name = header.get(_RUNTIME, b"")
    if not name.isascii() or not name.decode("ascii").isidentifier():
        return ""
    return f"{name.decode('ascii')} {_varint(header.get(_VERSION, b''), 0)[0]}"


def _missing_bytes(head: bytes, size: int) -> int:
    # By the length that executables for CPUs tell of themselves, and those for GPUs and TPUs not.
    header = _header_of(head)
    length, start = _varint(head, 0)
    at = start + length
    if _format_of(header) not in KNOWN_FORMATS or head[at : at + 1] != _FIRST_FIELD:
        return 0
    inside, begin = _varint(head, at + 1)
    return max(0, begin + inside - size)


_FIRST_FIELD = b"\n"
"""The tag of the first field of XLA's ExecutableAndOptionsProto, which is the executable."""

_TARGET = re.compile(rb"\n.(?:x86_64|aarch64|arm64)-[\w.-]+\x12.([\w.-]+)\x1a", re.DOTALL)
"""What XLA:CPU writes of the machine that it compiled for: triple, processor, and features."""

_MATCH_BYTES = 512
"""What matches is shorter: each of its two texts has a length of one byte."""


class Machine:
    """The machine that code for CPUs is compiled for, found as the bytes that say so go by."""

    def __init__(self) -> None:
        self.processor = ""
        self.features: tuple[str, ...] = ()
        self._kept = b""

    def look(self, part: bytes) -> None:
        """Look at the next bytes; a match may begin in those before."""
        if self.features:
            return
        seen = self._kept + part
        self._kept = seen[-_MATCH_BYTES:]
        if found := _TARGET.search(seen):
            length, start = _varint(seen, found.end())
            text = seen[start : start + length]
            self._kept = seen[found.start() :]
            if len(text) == length:
                self.processor = found[1].decode()
                words = text.decode("utf-8", "replace").split(",")
                self.features = tuple(word[1:] for word in words if word[:1] == "+")


def _varint(data: bytes, start: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[start : start + 10]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, start + place + 1
    return 0, len(data)


_COMPARABLE = re.compile(r"avx(2|512\w*|vnni\w*|ifma|ne\w*)?|amx\w*|fma|f16c|vaes|vpclmulqdq")
"""Names that LLVM and Linux share but for their dashes; others are spelled in too many ways."""


def lacking_features(features: Iterable[str]) -> tuple[str, ...]:
    """The features, as LLVM names them, that this machine's processor surely lacks.

    None where the system does not say what it has, as outside of Linux.
    """
    here = _here()
    plain = {name: _plain(name) for name in features} if here else {}
    return tuple(
        name for name, one in plain.items() if _COMPARABLE.fullmatch(one) and one not in here
    )


def _plain(feature: str) -> str:
    return re.sub(r"[-_.]", "", feature)  # LLVM has `avx512vnni`, Linux `avx512_vnni`


@functools.cache
def _here() -> frozenset[str]:
    return frozenset(map(_plain, cpu_features()))
