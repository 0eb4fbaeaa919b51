"""The sides that CuPy takes in a comparison."""

from __future__ import annotations

from harness.sides.cupy_eager import CupyEager
from harness.sides.cupy_fused import CupyFused
from harness.sides.cupy_graph import CupyGraph
from harness.sides.side import Side

CUPY_SIDES: dict[str, type[CupyEager]] = {
    side.name: side for side in (CupyEager, CupyFused, CupyGraph)
}


def cupy_side(name: str) -> Side:
    """Return the CuPy side called `name`: `cupy-eager`, `cupy-fused` or `cupy-graph`.

    Raises:
        Unavailable: CuPy cannot compute here; the text is the reason.
    """
    if name not in CUPY_SIDES:
        raise ValueError(f"no CuPy side is called {name!r}; known are {', '.join(CUPY_SIDES)}")
    return CUPY_SIDES[name]()
