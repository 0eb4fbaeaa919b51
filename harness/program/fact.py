"""What a fact is: one number that says what was built, and everything that is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Source = Literal["calls", "jaxpr", "stablehlo", "hlo", "cost", "memory"]
"""What a fact is read off, and what its `read` is called with: the calls of Python that were
counted, by the name of the fact (they are of the way to a program, not of the program); the jaxpr,
the `jax.stages.Lowered`, the :class:`harness.program.hlo.HloProgram`, XLA's analysis of costs (a
dictionary), XLA's analysis of memory."""

Unit = Literal["count", "bytes", "flops"]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One fact of a program. Whatever lists facts asks :mod:`harness.program.facts`."""

    name: str
    """The field of a record's `facts`, and the column of a frame."""
    source: Source
    unit: Unit = "count"
    better: Literal["less", "more"] = "less"
    """asv, for which less is better, gets no fact of which more is."""
    meaning: str
    """What it says, in a few words."""
    noun: str
    """What one of it is called in a difference: `+1 fusion`; of bytes, whose they are."""
    nouns: str = ""
    """What several are called; `noun` and an s without it."""
    read: Callable[[Any], Any]
    """Returns the number, None where it is not said. With `parts`, what it is made of: counts by
    kind, of which it is the sum, or a list with one element each."""
    parts: str = ""
    """The field of a record's `facts` that holds what it is made of."""
    part: Literal["kind", "trips"] = "kind"
    """What the parts are: counts by kind, or how often each loop runs."""
    summed_up: bool = False
    """Whether one line about a difference names the total and not its kinds, which are many."""
    large: bool = False
    """Whether it is written with k, M, G; bytes always are."""
    rank: int = 0
    """Its place among the facts that come first, from 1; 0 for one that does not."""
    column: bool = False
    """Whether `harness show --facts` has a column of it, in the order of `rank`."""

    @property
    def type(self) -> type[int] | type[float]:
        """The type of its values in a record: XLA's costs may be fractions."""
        return float if self.source == "cost" else int

    def total(self, parts: Any) -> Any:
        """Return the number, of what `read` returned."""
        if not self.parts or parts is None:
            return parts
        return sum(parts.values()) if self.part == "kind" else len(parts)
