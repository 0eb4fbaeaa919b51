"""What a cause of a build is: how it is told from the others, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from harness.profiles.model import Built

Place = Literal[
    "function",
    "chosen",
    "tree",
    "given",
    "statics",
    "types",
    "unused",
    "placement",
    "context",
    "options",
]
"""Where builds differ, in the order in which differences are told:

- `function`: the function object.
- `chosen`: which arguments are static.
- `tree`: the structures of the dynamic arguments; both as texts.
- `given`: a static argument; None where it was none.
- `statics`: the value of a static argument.
- `types`: an array's type; `unused`: of one that the function does not use. `placement`: where it
  lies.
- `context`: JAX's configuration, by (name, before, after).
- `options`: what else `jax.jit` was given, by (name, before, after).
"""

PLACES: tuple[Place, ...] = Place.__args__  # type: ignore[attr-defined]

UNTRACED = ("placement", "options")
"""Places that JAX looks at only when it lowers or compiles what it has traced."""

UNSURE = "If only values "
"""How a remedy begins that leaves nothing out where code differs, too."""


class Cause(NamedTuple):
    """Why one build was done."""

    kind: str
    argument: str = ""
    """Which argument or setting, in the user's words: `x`, `params['w']`, `steps`."""
    before: str = ""
    """Its value in the build that comes nearest."""
    after: str = ""
    sentence: str = ""
    """The cause in a sentence, with the user's own names."""
    remedy: str = ""
    """What to do about it, in a sentence."""
    nearest: int = 0
    """The build that it was compared with; 0 where there is none."""
    defined: str = ""
    """As of its :class:`Change`."""


class Change(NamedTuple):
    """What one place says of two builds."""

    argument: str
    before: str
    after: str
    type: str = ""
    """Of a static argument."""
    defined: str = ""
    """Of a static argument that is another object, but of the same kind as before: the file and
    line of a function, the type of anything else."""


class WithoutEdit(NamedTuple):
    """How a remedy is applied without an edit."""

    told: Mapping[str, Any]
    """What :mod:`harness.watch.remedies` is told besides the function."""
    words: str
    """With `{name}` of the function in it."""
    left_out: Sequence[Built] | None = None
    """The builds that it leaves out, if not all that have the cause."""


class Difference(NamedTuple):
    """One thing that is not as it was."""

    kind: ChangeKind
    change: Change
    sets_off: str
    """The first stages it can set off: letters of T(race), L(ower), C(ompile)."""


class Pair(NamedTuple):
    """Two builds of a function, the earlier one first."""

    old: Built
    new: Built


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A cause as such, told by what the profile decides; see also :class:`ChangeKind`."""

    name: str
    blameless: bool = False
    """Whether nothing can be said against a build that has it."""
    several: str = ""
    """What many such builds of a function are told by: `{what}` is the argument, `{n}` the number
    of its values, `{clause}` what one such build is told by."""
    again: str = ""
    """The whole of what is told of them: `{name}` is the function, `{after}`, `{times}`."""
    apart: bool = False
    """Whether builds are told of for each argument, as each is mended in another place."""
    remaining: Callable[[Sequence[str]], str] | None = None
    """What is left after the remedy, in a sentence, given all values that there were."""


Look = Callable[[Pair, Any], Iterable[Change] | None]
"""Gets two builds and what stands in a place; None where that is another cause's to tell."""

Words: TypeAlias = "str | Callable[[Built, Change], str]"
"""What is said: a text with `{argument}`, `{before}`, `{after}`, and `{name}` of the function in
it, or what makes one."""


def worded(words: Words, built: Built, change: Change) -> str:
    """Return what is said of a build."""
    if not isinstance(words, str):
        return words(built, change)
    argument, before, after, *_ = change
    return words.format(argument=argument, before=before, after=after, name=built.function.name)


@dataclass(frozen=True, kw_only=True)
class ChangeKind(Kind):
    """A cause that is a difference from an earlier build.

    Raises:
        TypeError: it looks nowhere, or in a place that there is not: it would never be found.
    """

    looks: Mapping[Place, Look]
    """Where it can be seen, and what sees it."""
    sets_off: str = "L"
    """The first stages that it sets off where it is seen in one of :data:`UNTRACED`."""
    sentence: Words
    remedy: Words
    of_jax: Callable[[Built, str], str] | None = None
    """The sentence about JAX's own functions, whose name is given; derived of the usual one."""
    instead: Callable[[Pair, list[Difference]], Cause | None] | None = None
    """The cause that it makes of all differences together, where it can."""
    each: bool = False
    """Whether JAX's own functions are always built anew for it."""
    foremost: bool = False
    """Whether it is told before all others."""
    placed: bool = False
    """Whether it is about where an array lies, of which one thing is told."""
    weight: int = 2
    """How far it takes two builds apart."""
    tried: Callable[[Cause, Sequence[Built]], WithoutEdit | None] | None = None
    """How `harness profile try` applies the remedy without an edit, given all builds of the
    function; None where it cannot."""

    def __post_init__(self) -> None:
        if not self.looks or not self.looks.keys() <= set(PLACES):
            raise TypeError(
                f"The cause {self.name!r} looks at {', '.join(self.looks) or 'nothing'}; expected "
                f"some of {', '.join(PLACES)}."
            )
