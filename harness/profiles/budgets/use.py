"""Hold what was built against limits: what was used of each, and by what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.profiles.budgets.limits import Limits
from harness.profiles.causes.cause import Cause
from harness.profiles.functions import Counted
from harness.profiles.model import Built

CauseOf = Callable[[Built], Cause]


@dataclass(frozen=True)
class Use:
    """What was used of one limit."""

    where: str
    """Whose limit it is, as the user wrote it: `[functions."loss"]`, `harness.budget`."""
    name: str
    """`max_compiles`."""
    allowed: float
    used: float
    functions: tuple[Counted, ...]
    """What was counted: one function, or all."""
    one: bool = False
    """Whether it is the limit of one function."""

    @property
    def over(self) -> bool:
        """Whether more was used than is allowed."""
        return self.used > self.allowed

    def counts(self, built: Built, cause_of: CauseOf) -> bool:
        """Return whether a build used any of it."""
        return _used_by(self.name, built, cause_of) > 0


def judge(
    limits: Limits,
    functions: Sequence[Counted],
    where: str,
    cause_of: CauseOf,
    one: bool = False,
) -> list[Use]:
    """Return what was used of each limit by some functions together, or by `one`.

    Together, JAX's own functions count for `max_eager` only, and all others for all but that.
    """
    own = tuple(counted for counted in functions if one or not counted.eager)
    eager = tuple(counted for counted in functions if counted.eager)
    return [
        Use(
            where,
            name,
            allowed,
            sum(_used(name, counted, cause_of) for counted in chosen),
            chosen,
            one,
        )
        for name, allowed in limits.given()
        for chosen in [eager if name == "max_eager" else own]
    ]


def _used(name: str, counted: Counted, cause_of: CauseOf) -> float:
    if name == "max_traces":
        return counted.traces
    return sum(_used_by(name, built, cause_of) for built in counted.builds)


def _used_by(name: str, built: Built, cause_of: CauseOf) -> float:
    match name:
        case "max_compiles" | "max_eager":
            return built.times("compile")
        case "max_traces":
            return built.times("trace") > 0
        case "max_lowers":
            return built.times("lower")
        case "max_compile_seconds":
            return compile_s(built)
        case "max_unexplained":
            return cause_of(built).kind == "unexplained"
    return 1


def compile_s(built: Built) -> float:
    """Return the seconds that a build spent in getting its executable, from XLA or the cache."""
    return sum(built.stage_ns(stage) for stage in ("compile", "load", "write")) / 1e9
