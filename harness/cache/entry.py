"""What is inside one entry, and whether JAX could read it; at most a few MB of it in memory.

An entry is `compress(seconds + executable)`: four bytes, big-endian, with the compile time in whole
seconds, then what XLA serialised. jax 0.10.2 to 0.12 compress with zstd where Python has it
(`compression.zstd` of Python 3.14, or the `zstandard` package) and with zlib elsewhere.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

import msgspec

from harness.cache.executable import Executable, XlaOptions, read_executable

State = Literal["readable", "empty", "torn", "garbage", "needs-zstd", "unreadable", "unchecked"]

Fault = Literal[
    "",
    "no-bytes",
    "not-compressed",
    "stream-stops",
    "stream-damaged",
    "no-executable",
    "executable-stops",
    "no-zstd",
    "not-a-file",
    "cannot-read",
    "too-large",
]

TIME_BYTES = 4
CHUNK_BYTES = 64 << 10
WHOLE_BYTES = 4 << 20
"""So much is unpacked at once; of what is larger, one chunk is in memory at a time."""
MOST_BYTES = 8 << 30
"""An entry that unpacks to more is left alone: reading on would serve somebody who fills disks."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Contents(msgspec.Struct, frozen=True):
    """What reading one entry showed.

    Attributes:
        fault: Why it is not readable; empty if it is.
        detail: Its first bytes in hexadecimal, how many bytes are missing, or the error's own text.
        compression: `zlib`, `zstd`, or empty if the first bytes are neither's.
        compile_whole_s: The compile time that JAX stored: whole seconds, rounded down.
    """

    state: State
    fault: Fault = ""
    detail: str = ""
    compression: str = ""
    compile_whole_s: int | None = None
    unpacked_bytes: int | None = None
    executable: Executable = Executable()


class _Bad(Exception):
    def __init__(self, state: State, fault: Fault, detail: object = "") -> None:
        self.state, self.fault, self.detail = state, fault, str(detail)


def read_contents(file: BinaryIO, options: dict[str, XlaOptions] | None = None) -> Contents:
    """Read one entry from its first byte to its last, as JAX would, and throw it away.

    XLA's options are put into `options`, by their hash: most entries have the same.
    """
    head = file.read(CHUNK_BYTES)
    if not head:
        return Contents("empty", "no-bytes")
    compression = _compression_of(head)
    if not compression:
        return Contents("garbage", "not-compressed", head[:4].hex(" "))
    library = zlib if compression == "zlib" else zstd_library()
    try:
        if compression == "zstd" and len(head) < len(ZSTD_MAGIC):
            raise _Bad("torn", "stream-stops")
        if library is None:
            raise _Bad("needs-zstd", "no-zstd")
        if library is zlib:
            return _unpack(_zlib_parts(head, file), compression, options)
        return _unpack(_zstd_parts(library, head, file), compression, options)
    except _Bad as bad:
        return Contents(bad.state, bad.fault, bad.detail, compression)


def _unpack(
    parts: Iterator[bytes], compression: str, options: dict[str, XlaOptions] | None
) -> Contents:
    first = next(parts)  # of most entries it is all
    size, executable = read_executable(first, parts, TIME_BYTES, MOST_BYTES, options)
    if size > MOST_BYTES:
        raise _Bad("unchecked", "too-large", MOST_BYTES)
    if size <= TIME_BYTES:
        raise _Bad("garbage", "no-executable", size)
    if executable.missing_bytes:
        raise _Bad("torn", "executable-stops", executable.missing_bytes)
    return Contents(
        "readable",
        compression=compression,
        compile_whole_s=int.from_bytes(first[:TIME_BYTES], "big"),
        unpacked_bytes=size,
        executable=executable,
    )


def _compression_of(head: bytes) -> str:
    if head[:4] == ZSTD_MAGIC[: len(head)]:
        return "zstd"
    deflate = head[0] & 0x0F == 8 and head[0] >> 4 <= 7
    if deflate and (len(head) == 1 or int.from_bytes(head[:2], "big") % 31 == 0):
        return "zlib"
    return ""


def _zlib_parts(chunk: bytes, file: BinaryIO) -> Iterator[bytes]:
    unpacker = zlib.decompressobj()
    try:
        while chunk:
            yield unpacker.decompress(chunk, WHOLE_BYTES)
            while unpacker.unconsumed_tail:
                yield unpacker.decompress(unpacker.unconsumed_tail, WHOLE_BYTES)
            if unpacker.eof:
                return
            chunk = file.read(CHUNK_BYTES)
    except zlib.error as error:
        raise _Bad("garbage", "stream-damaged", error) from None
    raise _Bad("torn", "stream-stops")


PIECE_BYTES = 2 * 1024
"""So little is unpacked at once with zstd, which makes 128 KiB of 4 bytes and knows no limit."""


def _zstd_parts(library: Any, chunk: bytes, file: BinaryIO) -> Iterator[bytes]:
    unpacker = library.ZstdDecompressor()
    if hasattr(unpacker, "decompressobj"):  # the zstandard package, not Python's own
        unpacker = unpacker.decompressobj()
    kept = b""
    try:
        while chunk:
            for start in range(0, len(chunk), PIECE_BYTES):
                kept += unpacker.decompress(chunk[start : start + PIECE_BYTES])
                if unpacker.eof:
                    yield kept
                    return
                if len(kept) > WHOLE_BYTES:
                    yield kept
                    kept = b""
            chunk = file.read(CHUNK_BYTES)
    except library.ZstdError as error:
        raise _Bad("garbage", "stream-damaged", error) from None
    raise _Bad("torn", "stream-stops")


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
