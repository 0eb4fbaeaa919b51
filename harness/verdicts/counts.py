"""What counts prove of two rows: more of Python's calls a slower stage, the others another program.

Counts have no noise to speak of, so one process on each side is enough. They prove that there is
more to do, never that there is not: time can rise where no count does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.frame.differences import ARROW
from harness.program.facts import TOTALS
from harness.stages.registry import STAGES, effect, thresholds

if TYPE_CHECKING:
    from harness.verdicts.pairs import Row

LEAST_SHARE = 0.005
"""The smallest change of Python's calls that proves anything. Identical code stayed within 0.25 %
or 40 calls in other processes, with other hash seeds, after other cases (docs/method.md)."""

LEAST_CALLS = 50
"""And in calls, for the smallest programs: one more operation is about 60 to 250 of them."""

VERSIONS = ("jax", "jaxlib")
"""What makes other calls of its own, which take other times."""


class Count(NamedTuple):
    """One fact that both sides know, and that differs."""

    fact: str
    before: float
    after: float

    @property
    def share(self) -> float:
        """How much it rose, in parts of what it was: 0.03 for 3 % more; inf from nothing."""
        return self.after / self.before - 1 if self.before else float("inf")


class Proof(NamedTuple):
    """A rise or fall of Python's calls in a stage, large enough to be one of its time."""

    stage: str
    calls: Count
    text: str
    """`proven by counts: 1,204 → 1,241 Python calls (+3.1 %)`."""
    cause: str
    """`environment` where another JAX makes the calls, else ""."""

    @property
    def rose(self) -> bool:
        """Whether there is more to do."""
        return self.calls.share > 0


def changed(a: Row, b: Row) -> list[Count]:
    """Return the facts that rose or fell from `a` to `b`, in the order of the facts."""
    known = [fact for fact in TOTALS if _is_known(a.get(fact)) and _is_known(b.get(fact))]
    return [Count(fact, a[fact], b[fact]) for fact in known if a[fact] != b[fact]]


def proof(a: Row, b: Row) -> Proof | None:
    """Return what Python's calls prove of the stage of two rows; None where they prove nothing.

    They prove nothing where Python is another minor version, whose interpreter counts differently.
    Those of another JAX take other times as well, so that they must differ by the smallest change
    that counts in the stage, as its time must; so must all where the project says what counts.
    """
    stage = STAGES.get(a["stage"])
    if stage is None or not stage.counted or _minor(a["python"]) != _minor(b["python"]):
        return None
    count = next((one for one in changed(a, b) if one.fact == stage.counted), None)
    if count is None or abs(count.after - count.before) < LEAST_CALLS:
        return None
    versions = [f"{name} {a[name]}{ARROW}{b[name]}" for name in VERSIONS if a[name] != b[name]]
    least = effect(stage.name) if versions else thresholds.get(stage.name, LEAST_SHARE)
    ratio = 1 + max(least, LEAST_SHARE)
    if 1 / ratio < 1 + count.share < ratio:
        return None
    text = f"proven by counts: {count.before:,.0f}{ARROW}{count.after:,.0f} Python calls"
    text += f" ({100 * count.share:+.1f} %)"
    return Proof(stage.name, count, "; ".join((text, *versions)), "environment" if versions else "")


def unknown(a: Row, b: Row) -> str:
    """Return why Python's calls in the stage of two rows cannot be held against each other.

    "" where they can, and where the stage has none.
    """
    stage = STAGES.get(a["stage"])
    if stage is None or not stage.counted:
        return ""
    if _minor(a["python"]) != _minor(b["python"]):
        return f"Python {a['python']}{ARROW}{b['python']}, which counts differently"
    lacking = [arm for arm, row in (("A", a), ("B", b)) if not _is_known(row.get(stage.counted))]
    if not lacking or a["status"] == b["status"] == "skipped":
        return ""
    return f"no calls counted in {' and '.join(lacking)}: measure again with this harness"


def _is_known(value: float | None) -> bool:
    return value is not None and value == value  # NaN is not


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])
