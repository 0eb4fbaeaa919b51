"""Pieces of a thread's time, one inside the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Piece(NamedTuple):
    """Something that took a thread's time."""

    begin_ns: int
    end_ns: int
    name: str
    kind: str
    about: dict[str, Any]


def nested(pieces: Iterable[Piece]) -> list[Piece]:
    """Return pieces of one thread by their beginning, each wholly inside or outside any other.

    One that would end after the piece it began in ends with that piece: viewers refuse overlaps,
    and the ends of two that were noted one after the other can be in either order.
    """
    found: list[Piece] = []
    around: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece.begin_ns, -piece.end_ns)):
        while around and around[-1].end_ns <= piece.begin_ns:
            around.pop()
        if around and piece.end_ns > around[-1].end_ns:
            piece = piece._replace(end_ns=around[-1].end_ns)
        piece = piece._replace(end_ns=max(piece.begin_ns, piece.end_ns))
        found.append(piece)
        around.append(piece)
    return found
