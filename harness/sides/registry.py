"""The sides there are: each a class in a file of its own, and a line here."""

from __future__ import annotations

from harness.sides.cupy_eager import CupyEager
from harness.sides.cupy_fused import CupyFused
from harness.sides.cupy_graph import CupyGraph
from harness.sides.fused_side import FusedSide
from harness.sides.numpy_side import NumpySide
from harness.sides.side import Side, complete
from harness.sides.xla_side import XlaSide

SIDES: dict[str, type[Side]] = {
    side.name: complete(side)
    for side in (
        XlaSide,
        NumpySide,
        FusedSide,
        CupyEager,
        CupyFused,
        CupyGraph,
    )
}
"""By name, in the order of tables and of processes."""

REFERENCE = XlaSide.name
"""The side that the others are held against."""


def of_family(family: str) -> list[type[Side]]:
    """Return the sides of a family of targets: `cpu`, `gpu` or `tpu`, which has none."""
    return [side for side in SIDES.values() if family in side.families]


def find(name: str) -> type[Side]:
    """Return the side of that name.

    Raises:
        ValueError: there is none; the known ones are named.
    """
    if name not in SIDES:
        raise ValueError(f"no side is called {name!r}; known are {', '.join(SIDES)}")
    return SIDES[name]
