"""What XLA serialised: the program, what it was compiled for, and with which options.

Read from the bytes alone, by the numbers of XLA's protocol buffers, as jaxlib 0.10.2 to 0.12.0.1
write them: a header with a length, then `ExecutableAndOptionsProto` for CPUs and GPUs. What is
written for TPUs has the header, and nothing after it that can be read.

Two compiles of one program are not always the same bytes: XLA stores its functions and thunks in
the order in which its threads made them. The optimised program and the options are the same.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

KNOWN_FORMATS = ("pjrt_ifrt 3",)
"""Written by jaxlib 0.10.2, 0.11.2 and 0.12.0.1."""

NEWEST_OPTIONS = {512: "0.10.2", 514: "0.11.0", 546: "0.11.2", 557: "0.12.0"}
"""The highest number of an option of XLA that a release of jaxlib writes; 0.12.0.1 as 0.12.0."""

CACHE_PATH = 310
"""The option `xla_gpu_per_fusion_autotune_cache_dir`: JAX's directory is in it."""

OF_THE_PLACE = (CACHE_PATH,)
"""XlaOptions that say where something is, and change no code."""


class XlaOptions(msgspec.Struct, frozen=True):
    """XLA's options, as an entry has them.

    Attributes:
        newest: The highest number of an option; 0 if there are none to be read.
        values: The value of each, by its number.
    """

    newest: int = 0
    values: dict[int, str] = {}

    @property
    def release(self) -> str:
        """The release of jaxlib that writes such: `0.11.2`, or what it is between or after."""
        if not self.newest:
            return ""
        older = [name for number, name in NEWEST_OPTIONS.items() if number < self.newest]
        newer = [name for number, name in NEWEST_OPTIONS.items() if number > self.newest]
        if self.newest in NEWEST_OPTIONS:
            return NEWEST_OPTIONS[self.newest]
        return f">{older[-1]}" if older else f"<{newer[0]}"

    @property
    def cache_path(self) -> str:
        """JAX's cache directory when it was compiled; empty if it is not recorded."""
        path, _, name = self.values.get(CACHE_PATH, "").rpartition("/")
        return path if name == "xla_gpu_per_fusion_autotune_cache_dir" else ""


class Executable(msgspec.Struct, frozen=True):
    """What is known of an executable; empty where it does not say.

    Attributes:
        program: A hash of the optimised program, without what differs between two compiles.
        options: A hash of XLA's options, and of the devices that it runs on.
        format: The name and version of the format; empty if there is no such header.
        module: The name of the compiled module inside.
        release: The release of jaxlib that has such options, as in `XlaOptions.release`.
        custom_partitioning: Whether the program uses it: JAX then hashes an address in its key.
        processor: The processor that XLA compiled for, such as `znver5`; empty for GPUs and TPUs.
        features: What of that processor the code may use, as LLVM names it: `avx512f`.
        missing_bytes: By how many bytes it is shorter than it says itself.
    """

    program: str = ""
    options: str = ""
    format: str = ""
    module: str = ""
    release: str = ""
    cache_path: str = ""
    custom_partitioning: bool = False
    processor: str = ""
    features: tuple[str, ...] = ()
    missing_bytes: int = 0


def read_executable(
    first: bytes,
    rest: Iterator[bytes],
    start: int,
    most: int,
    options: dict[str, XlaOptions] | None,
) -> tuple[int, Executable]:
    """Read an executable from the parts of a stream; return the size of all, and what it is.

    Args:
        first: The first part, with the header.
        rest: Yields the others.
        start: Where in it the executable begins.
        most: Reading stops after so many bytes.
        options: Where options are put by their hash.
    """
    length, begin = _varint(first, start)
    at = begin + length
    header = _header_of(first[begin:at], length)
    program, end = _ranges(first, at) if header.format in KNOWN_FORMATS else ((at, -1), -1)
    programs = hashlib.blake2b(digest_size=16)
    machine, size, tail = Machine(), 0, b""
    part: bytes | None = first
    while part is not None:
        last = len(part) if program[1] < 0 else max(0, program[1] - size)
        programs.update(part[max(0, program[0] - size) : last])
        machine.look(part)
        if end >= 0 and size + len(part) > end and len(tail) < _MOST_OPTIONS_BYTES:
            tail += part[max(0, end - size) :]
        size += len(part)
        part = next(rest, None) if size <= most else None
    key, parsed, release, cache_path = _options_of(tail)
    if options is not None and key:
        options.setdefault(key, parsed)
    return size, Executable(
        programs.hexdigest(),
        key,
        header.format,
        header.module,
        release,
        cache_path,
        first.find(b"custom_partitioning", program[0], program[1]) >= 0,
        machine.processor,
        machine.features,
        max(0, end - size),
    )


_MOST_OPTIONS_BYTES = 1 << 20

_VERSION, _RUNTIME, _MODULE = 1, 2, 7
"""Fields of the header."""

_FIRST_FIELD, _SECOND_FIELD, _THIRD_FIELD = b"\x0a", 2, 3
"""The executable, then its options; in them the options of the build, and in those XLA's."""


class _Header(NamedTuple):
    format: str = ""
    module: str = ""


@functools.lru_cache(maxsize=1024)
def _header_of(header: bytes, length: int) -> _Header:
    fields = dict[int, bytes]()
    for number, value in _fields(header):
        fields.setdefault(number, value)
    name = fields.get(_RUNTIME, b"")
    if len(header) != length or not name.isascii() or not name.decode("ascii").isidentifier():
        return _Header()
    version, _ = _varint(fields.get(_VERSION, b""), 0)
    module = fields.get(_MODULE, b"").decode("utf-8", "replace")
    return _Header(f"{name.decode('ascii')} {version}", module)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a protocol buffer, a number as its bytes; up to what is none."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        begin = at
        if tag & 7 == 0:
            _, at = _varint(message, at)
        elif tag & 7 == 2:
            size, begin = _varint(message, at)
            at = begin + size
        elif tag & 7 in (1, 5):
            at += 8 if tag & 7 == 1 else 4
        else:
            return
        if at <= len(message):
            yield tag >> 3, message[begin:at]


def _ranges(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Return where the program is, and where the executable ends and its options begin.

    For CPUs the optimised program is the first thing in the executable, twice inside; for GPUs all
    of the executable counts.
    """
    if data[at : at + 1] != _FIRST_FIELD:
        return (at, -1), -1
    length, begin = _varint(data, at + 1)
    end = begin + length
    inner = begin, end
    for _ in range(2):
        if data[inner[0] : inner[0] + 1] != _FIRST_FIELD:
            return (begin, end), end
        size, start = _varint(data, inner[0] + 1)
        if start + size > inner[1]:
            return (begin, end), end
        inner = start, start + size
    return inner, end


@functools.lru_cache(maxsize=256)
def _options_of(tail: bytes) -> tuple[str, XlaOptions, str, str]:
    """Return of the options that follow an executable a hash, XLA's, their release and path."""
    if not tail:
        return "", XlaOptions(), "", ""
    whole = dict(_fields(tail)).get(_SECOND_FIELD, b"")
    build = list(_fields(dict(_fields(whole)).get(_THIRD_FIELD, b"")))
    xla = dict(build).get(_THIRD_FIELD, b"")
    values = {number: _shown(value) for number, value in _fields(xla)}
    hashed = hashlib.blake2b(digest_size=16)
    for number, value in build:
        if number != _THIRD_FIELD:
            hashed.update(b"%d %s\n" % (number, value))
    for number, text in values.items():
        if number not in OF_THE_PLACE:
            hashed.update(f"{number} {text}\n".encode())
    options = XlaOptions(max(values, default=0), values)
    return hashed.hexdigest(), options, options.release, options.cache_path


def _shown(value: bytes) -> str:
    if len(value) <= 10 and value and value[-1] < 0x80 and all(byte >= 0x80 for byte in value[:-1]):
        return str(_varint(value, 0)[0])
    text = value.decode("utf-8", "replace")
    return text if text.isprintable() else value.hex()


def _varint(data: bytes, start: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[start : start + 10]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, start + place + 1
    return 0, len(data)


_PROCESSORS = (b"x86_64-", b"aarch64-", b"arm64-")

_TARGET = re.compile(rb"\n.\w+-[\w.-]+\x12.([\w.-]+)\x1a", re.DOTALL)
"""What XLA:CPU writes of the machine that it compiled for: triple, processor, and features."""

_MATCH_BYTES = 512
"""What matches is shorter: each of its two texts has a length of one byte."""


def _target_in(data: bytes) -> re.Match[bytes] | None:
    for name in _PROCESSORS:
        at = data.find(name)
        while at >= 0:
            if match := _TARGET.match(data, max(0, at - 2)):
                return match
            at = data.find(name, at + 1)
    return None


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
        seen = self._kept + part if self._kept else part
        self._kept = seen[-_MATCH_BYTES:]
        if match := _target_in(seen):
            length, start = _varint(seen, match.end())
            text = seen[start : start + length]
            self._kept = seen[match.start() :]
            if len(text) == length:
                self.processor, self.features = match[1].decode(), _features_of(text)


@functools.lru_cache(maxsize=256)
def _features_of(text: bytes) -> tuple[str, ...]:
    words = text.decode("utf-8", "replace").split(",")
    return tuple(word[1:] for word in words if word[:1] == "+")


_COMPARABLE = re.compile(r"avx(2|512\w*|vnni\w*|ifma|ne\w*)?|amx\w*|fma|f16c|vaes|vpclmulqdq")
"""Names that LLVM and Linux share but for their dashes; others are spelled in too many ways."""


@functools.lru_cache(maxsize=256)
def lacking_features(features: tuple[str, ...]) -> tuple[str, ...]:
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
    from harness.targets.host import cpu_features  # a tenth of a second with all that it needs

    return frozenset(map(_plain, cpu_features()))


def code_objects(data: bytes, start: int) -> Iterator[bytes]:
    """Yield the object files in an executable for CPUs; none in others."""
    length, begin = _varint(data, start)
    at = begin + length
    if data[at : at + 1] != _FIRST_FIELD:
        return
    size, first = _varint(data, at + 1)
    for number, value in _fields(data[first : first + size]):
        if number == _OBJECT_FILE:
            yield from (code for field, code in _fields(value) if field == 1)


_OBJECT_FILE = 8
"""The field of XLA's CompilationResultProto."""
