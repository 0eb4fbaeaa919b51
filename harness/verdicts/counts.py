"""What counts prove of two rows: more of Python's calls a slower stage, the others another program.

Counts have no noise to speak of, so one process on each side is enough. They prove that there is
more to do, never that there is not: time can rise where no count does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from harness.stages.registry import STAGES, effect, thresholds
from harness.verdicts.verdict import FASTER, LESS, MORE, SLOWER

if TYPE_CHECKING:
    from harness.frame.pairs import Row

LEAST_SHARE = 0.005
"""The smallest change of Python's calls that proves anything. Identical code stayed within 0.25 %
or 40 calls in other processes, with other hash seeds, after other cases (docs/method.md)."""

LEAST_CALLS = 50
"""And in calls, for the smallest programs: one more operation is about 60 to 250 of them."""

VERSIONS = ("jax", "jaxlib")
"""What makes other calls of its own, which take other times."""


class Proof(NamedTuple):
    """A rise or fall of Python's calls in a stage, large enough to be one of its time."""

    stage: str
    before: float
    after: float
    other_jax: bool
    """Whether the calls are those of another JAX."""

    @property
    def rose(self) -> bool:
        """Whether there is more to do."""
        return self.after > self.before

    @property
    def ratio(self) -> float:
        """After / before."""
        return self.after / self.before if self.before else math.inf

    @property
    def kind(self) -> str:
        """`slower` or `faster` where it counts in the stage's time, else `more` or `less`."""
        if max(self.ratio, 1 / self.ratio) >= 1 + effect(self.stage):
            return SLOWER if self.rose else FASTER
        return MORE if self.rose else LESS


def proof(a: Row, b: Row) -> Proof | None:
    """Return what Python's calls prove of the stage of two rows; None where they prove nothing.

    They prove nothing where Python is another minor version, whose interpreter counts differently.
    Those of another JAX take other times as well, so that they must differ by the smallest change
    that counts in the stage, as its time must; so must all where the project says what counts.
    """
    return _proof(a, b, a["stage"])


def _proof(a: Row, b: Row, stage: str) -> Proof | None:
    counted = _counted(stage)
    if not counted or _minor(a["python"]) != _minor(b["python"]) or _lacking(a, b, counted):
        return None
    before, after = a[counted], b[counted]
    if abs(after - before) < LEAST_CALLS:
        return None
    other_jax = any(a[name] != b[name] for name in VERSIONS)
    least = effect(stage) if other_jax else thresholds.get(stage, LEAST_SHARE)
    share = after / before - 1 if before else math.inf
    ratio = 1 + max(least, LEAST_SHARE)
    if 1 / ratio < 1 + share < ratio:
        return None
    return Proof(stage, before, after, other_jax)


def same(a: Row, b: Row) -> bool:
    """Tell whether both sides counted Python's calls in all stages, and none proves a change."""
    return all(
        not _lacking(a, b, stage.counted) and _proof(a, b, name) is None
        for name, stage in STAGES.items()
        if stage.counted
    )


def unknown(a: Row, b: Row) -> tuple[str, ...]:
    """Return a code and what belongs to it, where Python's calls in a stage cannot be compared.

    Nothing where they can, and where the stage has none.
    """
    counted = _counted(a["stage"])
    if counted and _minor(a["python"]) != _minor(b["python"]):
        return "python", a["python"], b["python"]
    lacking = _lacking(a, b, counted) if counted else []
    skipped = a["status"] == b["status"] == "skipped"
    return ("not counted", " and ".join(lacking)) if lacking and not skipped else ()


def _counted(stage: str) -> str:
    """Return the column of the calls in a stage; "" where none are counted."""
    return STAGES[stage].counted if stage in STAGES else ""


def _lacking(a: Row, b: Row, counted: str) -> list[str]:
    sides = (("A", a.get(counted)), ("B", b.get(counted)))
    return [arm for arm, calls in sides if calls is None or calls != calls]  # NaN


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])
