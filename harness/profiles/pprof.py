"""A profile as pprof has it: seconds of trace, lower and compile, by the user's lines and stacks.

The format is `profile.proto` of github.com/google/pprof, packed: `go tool pprof`, speedscope and
others open it. Only what is needed of protocol buffers is written here: numbers, texts, messages.
"""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from harness.jaxhooks.events import Frame, Function
from harness.profiles.model import Built
from harness.profiles.pieces import STAGES
from harness.profiles.recorded import Recorded
from harness.profiles.tracks import process_names

KINDS = (*((stage, "nanoseconds") for stage in STAGES), ("builds", "count"))
"""The values of a sample, and their units; the first one that a viewer shows is :data:`DEFAULT`."""

DEFAULT = "compile"


class _Sample(NamedTuple):
    stack: tuple[Frame, ...]
    """The innermost first."""
    labels: tuple[tuple[str, str], ...]


def pprof_of(profile: Recorded) -> bytes:
    """Return a profile of all builds, packed.

    A sample is of one function at one stack: its innermost frame is the function that was built,
    the next one the line that asked for it. Functions that were traced inside of another stand
    under that, and what they took is theirs alone. Labels: process, and cause.
    """
    values: dict[_Sample, Counter[str]] = defaultdict(Counter)
    names = process_names(profile)
    for process in profile.processes:
        for built in (*process.builds, *process.unfinished):
            cause = "" if built.going_on else profile.cause_of(built).kind
            named = ("process", names[process.name]), ("cause", cause)
            labels = tuple((key, text) for key, text in named if text)
            for stack, kind, amount in _parts(built):
                values[_Sample(stack, labels)][kind] += amount
    run = profile.run
    begin = min((one.started.at_s for one in profile.processes), default=0.0)
    length = max((one.end_ns - one.begin_ns for one in profile.processes), default=0)
    comment = f"harness profile -- {' '.join(run.command)}" if run else "harness profile"
    return gzip.compress(_encoded(values, round(begin * 1e9), length, comment), 6, mtime=0)


def _parts(built: Built) -> Iterator[tuple[tuple[Frame, ...], str, int]]:
    """Yield the stack, the kind and the amount of what a build took, each moment once."""
    stack = (_frame(built.function), *reversed(built.frames))
    # A function's own is what is not of one inside; builds inside of it count for themselves.
    trace = _Open(built.line.end_ns, stack, built.stage_ns("trace"))
    parts, around = [trace], [trace]
    for one in sorted(built.line.inner, key=lambda one: (one.begin_ns, -one.end_ns)):
        function = built.process.functions.get(one.function)
        if function is None:
            continue
        while len(around) > 1 and around[-1].end_ns <= one.begin_ns:
            around.pop()
        outer = around[-1]
        took = min(one.end_ns - one.begin_ns, outer.left_ns)
        outer.left_ns -= took
        inner = _Open(one.end_ns, (_frame(function), *outer.stack), took)
        parts.append(inner)
        around.append(inner)
    for part in parts:
        yield part.stack, "trace", part.left_ns
    for stage in STAGES:
        if stage != "trace":
            yield stack, stage, built.stage_ns(stage)
    yield stack, "builds", 1


@dataclass
class _Open:
    """A trace that may have others inside."""

    end_ns: int
    stack: tuple[Frame, ...]
    left_ns: int


def _frame(function: Function) -> Frame:
    return Frame(function.file, function.line, function.qualname, function.origin)


# The wire format: a field is its number and kind, then a number or so many bytes


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _numbers(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))


_Key = TypeVar("_Key")


class _Table(dict[_Key, int]):
    """Things by their number, in the order in which they came."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, key: _Key) -> int:
        number = self[key] = len(self) + self._first
        return number


def _encoded(
    values: dict[_Sample, Counter[str]], at_ns: int, length_ns: int, comment: str
) -> bytes:
    texts: _Table[str] = _Table(0)
    functions: _Table[tuple[str, str]] = _Table(1)
    locations: _Table[Frame] = _Table(1)
    empty = texts[""]
    kinds = [_number(1, texts[kind]) + _number(2, texts[unit]) for kind, unit in KINDS]
    parts = [_bytes(1, one) for one in kinds]
    for sample, amounts in values.items():
        body = _numbers(1, (locations[frame] for frame in sample.stack))
        body += _numbers(2, (amounts[kind] for kind, _ in KINDS))
        for key, text in sample.labels:
            body += _bytes(3, _number(1, texts[key]) + _number(2, texts[text]))
        parts.append(_bytes(2, body))
    for frame, number in locations.items():
        line = _number(1, functions[frame.function, frame.file]) + _number(2, frame.line)
        parts.append(_bytes(4, _number(1, number) + _bytes(4, line)))
    for function, number in functions.items():
        name, file = (texts[text] for text in function)
        body = _number(1, number) + _number(2, name) + _number(4, file)
        parts.append(_bytes(5, body))
    about = _number(9, at_ns) + _number(10, length_ns) + _numbers(13, [texts[comment]])
    about += _number(14, texts[DEFAULT])
    assert empty == 0  # of texts the first one is empty
    parts += [_bytes(6, text.encode("utf-8", "replace")) for text in texts]
    return b"".join([*parts, about])
