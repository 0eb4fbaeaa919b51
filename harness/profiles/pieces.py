"""What each moment of a build went into: its span cut into pieces that do not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.jaxhooks.events import Backend, Build, Import, Request, Running, Span

STAGES = ("trace", "lower", "compile", "load", "write")
"""What building is made of. `load` is what `compile` becomes where the persistent cache answers:
hashing, reading, deserialising; `write` is writing an entry."""

OTHER = "other"
"""The rest of a call that built: arguments, dispatch, the first run until it returned."""

UNFINISHED = "unfinished"
"""The error of a build that was going on when the log ended."""

SILENT_NS = 5_000_000_000
"""A build of which nothing was heard for so long, while the log went on, is over."""

Interval = tuple[int, int]


class Piece(NamedTuple):
    """A part of a build, on its thread."""

    stage: str
    """One of :data:`STAGES`, or :data:`OTHER`."""
    begin_ns: int
    end_ns: int


def pieces_of(line: Build, holes: Sequence[Interval] = ()) -> tuple[Piece, ...]:
    """Cut a build into pieces.

    Within what a build spent on compiling, the order is taken to be compile, load, write: the log
    has the seconds of each, and one request after the other.

    Args:
        line: the build.
        holes: what counts elsewhere (builds inside this one, the start of the backend), in order.
    """
    pieces: list[Piece] = []
    at, end = line.begin_ns, None
    for span in sorted(line.spans, key=lambda span: (span.begin_ns, -span.end_ns)):
        if end is not None and span.begin_ns < end:  # it lies in another
            continue
        begin, end = span.begin_ns, span.end_ns
        if begin > at:
            pieces.append(Piece(OTHER, at, begin))
        if end > max(begin, at):
            pieces.append(Piece(span.stage, max(begin, at), end))
        at = max(at, begin, end)
    if line.end_ns > at:
        pieces.append(Piece(OTHER, at, line.end_ns))
    if holes:
        pieces = [part for piece in pieces for part in _without(piece, holes)]
    if line.requests:
        pieces = _requests_told_apart(pieces, line)
    return tuple(pieces)


def _without(piece: Piece, holes: Sequence[Interval]) -> list[Piece]:
    left = []
    at = piece.begin_ns
    for begin, end in holes:
        if begin >= piece.end_ns:
            break
        if begin > at:
            left.append(Piece(piece.stage, at, begin))
        at = max(at, end)
    if at < piece.end_ns:
        left.append(Piece(piece.stage, at, piece.end_ns))
    return left


def _requests_told_apart(pieces: Sequence[Piece], line: Build) -> list[Piece]:
    """Divide the pieces of the stage `compile` by what the persistent cache did in them."""
    left = sum(piece.end_ns - piece.begin_ns for piece in pieces if piece.stage == "compile")
    if all(request.outcome == "hit" for request in line.requests):
        load = left
    else:
        load = sum(request.request_ns for request in line.requests if request.outcome == "hit")
    write = min(left, sum(map(written_ns, line.requests)))
    load = min(load, left - write)
    due = {"compile": left - load - write, "load": load, "write": write}
    divided = []
    for piece in pieces:
        if piece.stage != "compile":
            divided.append(piece)
            continue
        at = piece.begin_ns
        for stage in due:
            length = min(due[stage], piece.end_ns - at)
            if length > 0:
                divided.append(Piece(stage, at, at + length))
                due[stage] -= length
                at += length
    return divided


def written_ns(request: Request) -> int:
    """Return what writing an entry took; nothing where there is no cache, and JAX only looked."""
    return request.write_ns if request.directory or request.outcome != "unwritten" else 0


def holes_of(lines: Iterable[Build | Import | Backend]) -> dict[int, list[Interval]]:
    """Return what lies inside each build of a process and counts for itself, by the build's number.

    On one thread, a build that lies inside another was asked for by it: an operation that ran while
    a function was traced, say. `import jax` and the start of the backend count for themselves too.
    Only what lies directly inside is named.
    """
    threads: dict[int, list[tuple[int, int, int | None]]] = {}
    for line in lines:
        number = line.id if isinstance(line, Build) else None
        threads.setdefault(line.thread, []).append((line.begin_ns, line.end_ns, number))
    holes: dict[int, list[Interval]] = {}
    for numbered in threads.values():
        around: list[tuple[int, int, int | None]] = []
        # Of two that begin together the outer one first, and a build around what else counts.
        for begin, end, number in sorted(numbered, key=lambda of: (of[0], -of[1], of[2] is None)):
            while around and around[-1][1] <= begin:
                around.pop()
            if around and (outer := around[-1][2]) is not None:
                holes.setdefault(outer, []).append((begin, min(end, around[-1][1])))
            around.append((begin, end, number))
    return holes


def unfinished_of(lines: Iterable[Running], done: Iterable[Build], end_ns: int) -> list[Build]:
    """Return the builds that were going on when a log was cut off, as far as they came.

    Each has a negative number, :data:`UNFINISHED` as its error, and a span for each stage that it
    was seen in. A line says so about once a second; one that stopped to is over: a call that built
    nothing has no other line.
    """
    ended = set()
    latest: dict[int, int] = {}
    for line in done:
        ended.add((line.thread, line.begin_ns))
        latest[line.thread] = max(line.begin_ns, latest.get(line.thread, 0))
    going_on: dict[tuple[int, int], list[Running]] = {}
    for seen_at in lines:
        key = (seen_at.thread, seen_at.begin_ns)
        if key not in ended:
            going_on.setdefault(key, []).append(seen_at)
    going_on = {
        (thread, begin_ns): seen
        for (thread, begin_ns), seen in going_on.items()
        if seen[-1].at_ns >= max(latest.get(thread, 0), end_ns - SILENT_NS)
    }
    unfinished = []
    for number, ((thread, begin_ns), seen) in enumerate(going_on.items(), 1):
        last, end = seen[-1], max(end_ns, begin_ns)
        place = last.stack, thread, begin_ns, end, tuple(_stages_seen(seen, end))
        unfinished.append(Build(-number, last.function, 0, 0, *place, error=UNFINISHED))
    return unfinished


def _stages_seen(seen: Sequence[Running], end_ns: int) -> Iterator[Span]:
    at = seen[0].begin_ns
    for line, after in zip(seen, [*seen[1:], None], strict=True):
        if after is not None and after.stage == line.stage:
            continue
        end = after.at_ns if after is not None else end_ns
        if line.stage in ("trace", "lower", "compile") and end > at:
            yield Span(line.stage, at, end, 0)  # type: ignore[arg-type]
        at = max(at, end)
