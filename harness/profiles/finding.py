"""One finding of a profile, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.jaxhooks.events import Function, LoweringCall, Promoted
from harness.profiles.causes.cause import Cause, Remedy
from harness.profiles.model import Built, count_of, seconds_of

LEAST_S = 0.05
"""Seconds that building in threads has to save."""

Kind = Literal[
    "unfinished",
    "uncalled",
    "ahead",
    "again",
    "first",
    "firsts",
    "shard_map",
    "large",
    "small",
    "loop",
]
"""What a finding is about.

- `unfinished`: a build that never ended; `first`: first builds of a function, `firsts`: of several.
- `uncalled`: programs of a function that were compiled ahead of time and never called; `ahead`:
  programs that one thread compiled ahead of time, one after another.
- `again`: builds of a function that had been built, for one kind of cause.
- `large`, `small`, `loop`: programs of JAX's own functions outside jit: one, small ones by who
  called them, loops and branches with functions in them. `shard_map`: of one that runs eagerly.
"""

When = Literal["", "iteration", "traced", "imported", "disabled"]
"""Which small programs: in a loop over an array, while others are traced, a library is imported, or
`jax.disable_jit` is on."""

Stage = Literal["compiled", "loaded", "lowered", "traced"]


@dataclass(frozen=True)
class Finding:
    """One thing to know about a program."""

    kind: Kind
    seconds: float
    """What its builds took, on whatever thread."""
    builds: tuple[Built, ...]
    count: int = 0
    """Builds, or small programs: the stages of one ahead of time count once."""
    loaded: int = 0
    reached: Stage = "traced"
    """The latest stage that any of them reached."""
    cause: Cause | None = None
    built: Built | None = None
    values: int = 0
    others: tuple[tuple[str, int], ...] = ()
    """Other arguments with a cause of that kind, each with its number of builds."""
    remedy: Remedy | None = None
    sites: tuple[str, ...] = ()
    """The lines that asked for them, `train.py:88`, that of most seconds first."""
    stage: str = ""
    """Of a first build: the stage that took most; of an unfinished one: where it was."""
    stage_s: float = 0.0
    """Of that stage; of programs ahead of time: what threads save at most."""
    kernel: LoweringCall | None = None
    """Of a first build that is mostly lowered: what is not JAX's own in that, and took most. Of
    builds again: the `__eq__` of a static value, with what all its calls took."""
    promoted: Promoted | None = None
    """The loop whose body's second trace took most, where that is much of a first build."""
    functions: tuple[Function, ...] = ()
    caller: str = ""
    within: str = ""
    when: When = ""
    sizes: int = 0
    """For how many shapes one call was built at most: of a loop, or where half of small programs
    are of such."""
    recreated: bool = False
    """Of a loop: whether each build has a function object of its own."""

    @property
    def function(self) -> Function:
        """What was built, or the first of it."""
        return self.functions[0]


def reached(builds: Sequence[Built]) -> Stage:
    """Return what was done in all of these builds, the latest stage that any of them reached."""
    if any(built.compiles for built in builds):
        return "compiled"
    if any(built.hits for built in builds):
        return "loaded"
    return "lowered" if any(built.times("lower") for built in builds) else "traced"


def done(builds: Sequence[Built]) -> dict[str, object]:
    """Return the fields of a finding that say what was done in its builds."""
    return {
        "seconds": seconds_of(builds),
        "builds": tuple(builds),
        "count": count_of(builds),
        "loaded": sum(reached([built]) == "loaded" for built in builds),
        "reached": reached(builds),
    }


def sites_of(
    builds: Iterable[Built], site_of: Callable[[Built], str] | None = None
) -> tuple[str, ...]:
    """Return the lines that builds were asked for from, that of most seconds first.

    Of a library, where the program's own code is not on the stack.
    """
    taken: Counter[str] = Counter()
    for built in builds:
        taken[site_of(built) if site_of else built.site] += built.build_ns
    return tuple(site for site, _ in taken.most_common() if site)


def functions_of(builds: Iterable[Built]) -> tuple[Function, ...]:
    """Return the functions of some builds, one of each name, that of most builds first."""
    by_name = {built.function.name: built.function for built in builds}
    counts = Counter(built.function.name for built in builds)
    return tuple(by_name[name] for name, _ in counts.most_common())


def promoted_in(builds: Iterable[Built], least_s: float) -> Promoted | None:
    """Return the loop whose body's second trace took most, where it took that many seconds."""
    loops = (one for built in builds for one in built.line.promoted if one.ns >= 1e9 * least_s)
    return max(loops, key=lambda one: one.ns, default=None)
