"""Whether entries are what their programs compile to: rebuilt by a run of the program, compared.

The program runs in processes of its own, and its cache finds nothing and writes into a temporary
folder, so that the directory stays byte for byte what it was. Two compiles of one program are not
always the same bytes: what counts is the optimised program, its options, and the functions of the
code, in any order.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.cache.directory import CACHE_SUFFIX
from harness.cache.entry import TIME_BYTES, zstd_library
from harness.cache.executable import code_objects, read_executable
from harness.cache.finding import Verdict, Verification, VerifiedEntry
from harness.jaxhooks import programs, rebuild
from harness.jaxhooks.temporary import temporary_folder

MOST_BYTES = 1 << 30

REBUILDS = 3
"""So often a program whose code is not equal is rebuilt in all."""


class _Content(msgspec.Struct, frozen=True):
    program: tuple[str, ...]
    code: str


def verify(directory: Path, words: Sequence[str], most: int) -> Verification:
    """Rebuild at most so many entries by running a program, and compare them.

    `words` are a command, as after `--`: it runs until so many entries of the directory were
    rebuilt, and three times where one of them has other code.
    """
    command = programs.command_of(words, "harness cache doctor DIR --verify 10 -- python train.py")
    runs: list[dict[str, _Content | None]] = []
    code = 0
    kept: dict[str, _Content | None] = {}
    while len(runs) < REBUILDS:
        with temporary_folder() as folder:
            code = _run(command, directory, folder, most)
            runs.append({path.name: _content(path) for path in folder.glob(f"*{CACHE_SUFFIX}")})
        kept = kept or {name: _content(directory / name) for name in runs[0]}
        if all(_is_settled(kept[name], runs[0][name]) for name in runs[0]):
            break
    entries = (
        VerifiedEntry(
            name.removesuffix(CACHE_SUFFIX),
            _verdict(kept[name], [run[name] for run in runs if name in run]),
            len(runs),
        )
        for name in sorted(runs[0])
    )
    return Verification(tuple(entries), code)


def _run(command: Sequence[str], directory: Path, into: Path, most: int) -> int:
    order = rebuild.order(directory.resolve(), into, most)
    there = {"JAX_COMPILATION_CACHE_DIR": str(directory.absolute()), **os.environ}
    variables = programs.environment(there, **{rebuild.VARIABLE: order})
    return programs.exit_code(programs.run(command, variables))


def _is_settled(entry: _Content | None, built: _Content | None) -> bool:
    return entry is None or built is None or entry == built or entry.program != built.program


def _verdict(entry: _Content | None, built: list[_Content | None]) -> Verdict:
    whole = [one for one in built if one is not None]
    if entry is None or not whole:
        return "unreadable"
    if entry in whole:
        return "equal"
    if all(entry.program != one.program for one in whole):
        return "wrong"
    return "not-deterministic" if len({one.code for one in whole}) > 1 else "code-differs"


def _content(path: Path) -> _Content | None:
    """What counts of an entry; None if it cannot be read."""
    try:
        data = _unpacked(path.read_bytes())
    except (OSError, ValueError, zlib.error):
        return None
    if data is None or len(data) <= TIME_BYTES:
        return None
    _, inside = read_executable(data, iter(()), TIME_BYTES, MOST_BYTES, None)
    program = inside.program, inside.options, inside.format, inside.module, inside.processor
    objects = list(code_objects(data, TIME_BYTES))
    if not objects:  # for GPUs and TPUs all of it counts
        return _Content(program, hashlib.blake2b(data[TIME_BYTES:]).hexdigest())
    functions = sorted(digest for one in objects for digest in _functions(one))
    return _Content(program, hashlib.blake2b("".join(functions).encode()).hexdigest())


def _unpacked(data: bytes) -> bytes | None:
    if data[:1] == b"\x28":
        library = zstd_library()
        if library is None:
            return None
        unpacker = library.ZstdDecompressor()
        whole = unpacker.decompressobj() if hasattr(unpacker, "decompressobj") else unpacker
        unpacked: bytes = whole.decompress(data)
        return unpacked
    return zlib.decompress(data)


_SYMBOL, _SECTION = struct.Struct("<IBBHQQ"), struct.Struct("<IIQQQQIIQQ")
_SYMBOL_TABLE = 2


def _functions(code: bytes) -> Iterator[str]:
    """Yield a hash of each symbol of an ELF file, of its name and bytes; of all, if it is none."""
    try:
        (start,) = struct.unpack_from("<Q", code, 40)
        size, count = struct.unpack_from("<HH", code, 58)
        sections = [_SECTION.unpack_from(code, start + number * size) for number in range(count)]
        for section in sections:
            if code[:4] == b"\x7fELF" and section[1] == _SYMBOL_TABLE:
                yield from _symbols(code, sections, section)
                return
    except (struct.error, IndexError, ValueError):
        pass
    yield hashlib.blake2b(code).hexdigest()


def _symbols(code: bytes, sections: list[tuple[int, ...]], table: tuple[int, ...]) -> Iterator[str]:
    texts = sections[table[6]][4]
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, _, _, where, value, size = _SYMBOL.unpack_from(code, at)
        if size and 0 < where < len(sections):
            begin = sections[where][4] + value - sections[where][3]
            text = code[texts + name : code.index(b"\0", texts + name)]
            yield hashlib.blake2b(text + b"\0" + code[begin : begin + size]).hexdigest()
