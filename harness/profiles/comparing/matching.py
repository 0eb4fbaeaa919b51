"""Which function of one profile is which of another: by file and qualified name, wherever the line.

A function that was renamed, or moved to another file, is one that is gone and one that is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.profiles.counting import Counted

Pair = tuple[Counted | None, Counted | None]


def pairs(a: Iterable[Counted], b: Iterable[Counted]) -> Iterator[Pair]:
    """Yield each function with its partner; None where it has none."""
    groups_a, groups_b = _grouped(a), _grouped(b)
    for name, ones in groups_b.items():
        yield from _paired(groups_a.pop(name, []), ones)
    for gone in groups_a.values():
        for one in gone:
            yield one, None


def _grouped(functions: Iterable[Counted]) -> dict[tuple[str, str], list[Counted]]:
    groups: dict[tuple[str, str], list[Counted]] = {}
    for one in functions:
        # JAX's own files change their lines and names with every release.
        place = "jax" if one.eager else one.key.place
        name = one.key.name if one.eager else one.key.qualname
        groups.setdefault((place, name), []).append(one)
    return groups


def _paired(a: list[Counted], b: list[Counted]) -> Iterator[Pair]:
    """Pair functions of one name, such as lambdas: in their order, or by the nearest line."""
    a, b = sorted(a, key=_line), sorted(b, key=_line)
    if len(a) == len(b):
        yield from zip(a, b, strict=True)
        return
    distances = sorted(
        (one.key.name != other.key.name, abs(_line(one) - _line(other)), i, j)
        for i, one in enumerate(a)
        for j, other in enumerate(b)
    )
    partner_of_a: dict[int, int] = {}
    partner_of_b: dict[int, int] = {}
    for *_, i, j in distances:
        if i not in partner_of_a and j not in partner_of_b:
            partner_of_a[i], partner_of_b[j] = j, i
    for j, other in enumerate(b):
        yield (a[partner_of_b[j]] if j in partner_of_b else None), other
    for i, one in enumerate(a):
        if i not in partner_of_a:
            yield one, None


def _line(one: Counted) -> int:
    return one.key.line
