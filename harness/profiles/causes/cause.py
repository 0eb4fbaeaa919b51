"""What a cause of a build is, and what sets it apart: codes and values, no words."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from harness.profiles.model import Built


class Several(NamedTuple):
    """The first of some things, and how many there are."""

    first: tuple[Any, ...] = ()
    number: int = 0


NAMED = 3


def several(things: list[Any]) -> Several:
    """Return the first of some things, and their number."""
    return Several(tuple(things[:NAMED]), len(things))


class ToJit(NamedTuple):
    """A function of the program that may be jitted."""

    name: str
    file: str = ""
    """Where something else of that name is jitted already."""
    nested: bool = False
    """Its caller makes it: jitted there, it would be built for each call."""


class RemedyKind(NamedTuple):
    """A way out that many builds share."""

    id: str
    """What a reader can look up and mute; it never means anything else."""
    sure: bool = True
    """Whether it leaves builds out for sure; not where code has to be alike for that."""


REMEDIES = {
    # Functions that are recreated.
    "jit once": RemedyKind("JH001"),
    "jit once and pass": RemedyKind("JH002"),
    "define once and pass": RemedyKind("JH003"),
    "partial once": RemedyKind("JH004"),
    "method": RemedyKind("JH005"),
    "filter_jit once": RemedyKind("JH006"),
    "filter_jit once and pass": RemedyKind("JH007"),
    "library object": RemedyKind("JH008"),
    "library object and pass": RemedyKind("JH009"),
    "pass what differs": RemedyKind("JH010", sure=False),
    "one set of options": RemedyKind("JH011"),
    "ahead of time": RemedyKind("JH012"),
    "pass what it binds": RemedyKind("JH013"),
    "method and pass": RemedyKind("JH014"),
    # Static arguments.
    "dynamic": RemedyKind("JH020"),
    "dynamic unless it sizes": RemedyKind("JH021"),
    "dynamic bool": RemedyKind("JH022", sure=False),
    "few values": RemedyKind("JH023"),
    "filter_jit array": RemedyKind("JH024"),
    "filter_jit array unless it sizes": RemedyKind("JH025"),
    "filter_jit few values": RemedyKind("JH026"),
    "static function once": RemedyKind("JH027"),
    "static object once": RemedyKind("JH028"),
    "equality": RemedyKind("JH029"),
    "array or never": RemedyKind("JH030"),
    "own equality": RemedyKind("JH031"),
    "one type": RemedyKind("JH032"),
    # The structure of arguments.
    "same structure": RemedyKind("JH040"),
    "by keyword": RemedyKind("JH041"),
    "one way": RemedyKind("JH042"),
    "one kind of dictionary": RemedyKind("JH043"),
    "held object once": RemedyKind("JH044"),
    "class once": RemedyKind("JH045"),
    "field as data": RemedyKind("JH046"),
    "pass what it holds": RemedyKind("JH047"),
    # Arrays.
    "pad": RemedyKind("JH050"),
    "one dtype": RemedyKind("JH051"),
    "one kind of key": RemedyKind("JH052"),
    "references of one dtype": RemedyKind("JH053"),
    "always an array": RemedyKind("JH054"),
    "explicit dtype": RemedyKind("JH055"),
    "one sharding": RemedyKind("JH056"),
    "commit": RemedyKind("JH057"),
    "one device": RemedyKind("JH058"),
    "one layout": RemedyKind("JH059"),
    "leave out": RemedyKind("JH060"),
    # What surrounds a call.
    "one setting": RemedyKind("JH070"),
    "clear less": RemedyKind("JH071"),
    "call before threads": RemedyKind("JH072"),
    "fewer programs": RemedyKind("JH073"),
    "fix error": RemedyKind("JH074"),
    "jit on": RemedyKind("JH075"),
    # Programs outside jit.
    "jit functions": RemedyKind("JH080"),
    "numpy or one jit": RemedyKind("JH081"),
    "inside jit": RemedyKind("JH082"),
    "jit around loop": RemedyKind("JH083"),
    "jit differentiated": RemedyKind("JH084"),
    "jit outside loop": RemedyKind("JH085"),
    "numpy to iterate": RemedyKind("JH086"),
    "jit shard_map": RemedyKind("JH087"),
    "few sizes": RemedyKind("JH088"),
    "size": RemedyKind("JH089"),
    "where": RemedyKind("JH090"),
    "jit library call": RemedyKind("JH091"),
    "numpy to library": RemedyKind("JH092"),
    "persistent cache": RemedyKind("JH093"),
    "jit tree map": RemedyKind("JH094"),
    # First builds.
    "look inside": RemedyKind("JH095", sure=False),
    "compile what is called": RemedyKind("JH096"),
    "compile in threads": RemedyKind("JH097", sure=False),
    "kernels in lower": RemedyKind("JH098", sure=False),
    "carry of one dtype": RemedyKind("JH099", sure=False),
}
"""By code; `docs/remedies.md` has a row for each identifier."""

IDS = {kind.id: code for code, kind in REMEDIES.items()}


class Remedy(NamedTuple):
    """What to do about a build."""

    kind: str
    """One of :data:`REMEDIES`."""
    argument: str = ""
    """What it is about, in the user's words: an argument, a setting, a function."""
    value: str = ""
    """What to give it, as far as that is known: a dtype, a way to pass it, a function's name."""
    type: str = ""
    library: str = ""
    place: str = ""
    """The program's own line that it is about."""
    counts: tuple[int, ...] = ()
    functions: tuple[ToJit, ...] = ()
    """What to jit, the slowest first."""
    alike: Several = Several()
    """Arguments that it goes for as well."""
    left: Several = Several()
    """What differs too and has to be changed as well: each a kind and an argument."""
    second: str = ""
    """The code of one that may be taken in its place."""

    @property
    def id(self) -> str:
        """`JH050`: what it is looked up and muted by."""
        return REMEDIES[self.kind].id

    @property
    def sure(self) -> bool:
        """Whether it leaves builds out for sure."""
        return REMEDIES[self.kind].sure


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
"""Where builds differ, in the order in which differences are listed:

- `function`: the function object.
- `chosen`: which arguments are static.
- `tree`: the structures of the dynamic arguments.
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

Way = Literal[
    "",
    "python",
    "weak",
    "fixed",
    "array",
    "absent",
    "given",
    "position",
    "keyword",
    "object",
    "rest",
    "uncommitted",
    "usual",
    "nothing",
]
"""How a value is to be read beside its text: "" is the text itself.

- `python`: a Python number of that type; `weak`, `fixed`: a weakly typed array, one of that dtype.
- `array`: some array; `absent`: not given; `given`: given; `position`, `keyword`: how it was given.
- `object`: an object of which only the identity differs; `rest`: the text goes on, and differs.
- `uncommitted`: to no device; `usual`: the usual layout; `nothing`: no argument.
"""

Shape: TypeAlias = tuple[int | str, ...]


class Cause(NamedTuple):
    """Why one build was done; without a kind, what one place has in two builds."""

    kind: str
    argument: str = ""
    """Which argument or setting, in the user's words: `x`, `params['w']`, `steps`."""
    before: str = ""
    """Its value in the build that comes nearest."""
    after: str = ""
    form: str = ""
    """Which of a kind's several forms it is."""
    ways: tuple[Way, Way] = ("", "")
    type: str = ""
    field: str = ""
    """The one field of that class that differs."""
    place: str = ""
    """Where what it is about stands, `FILE:LINE`."""
    library: str = ""
    """Whose that is."""
    sizes: tuple[Shape, ...] = ()
    differing: int = 1
    remedy: Remedy | None = None
    nearest: int = 0
    """The build that it was compared with; 0 where there is none."""
    alike: Several = Several()
    """Arguments that differ in the same way."""
    also: Several = Several()
    """What else differs, each a cause by itself."""

    @property
    def recreated(self) -> str:
        """Of a static argument that is a new object of one kind each time: which kind."""
        return (self.place or self.type) if self.form in ("recreated", "unequal") else ""

    @property
    def values(self) -> tuple[str, str]:
        """Both values as data: `python float`, `float32`, `absent`."""
        pairs = zip(self.ways, (self.before, self.after), strict=True)
        one, other = (f"{way} {text}".strip() if way != "fixed" else text for way, text in pairs)
        return one, other


Change = functools.partial(Cause, "")
"""A cause that has no kind yet."""


class WithoutEdit(NamedTuple):
    """How a remedy is applied without an edit."""

    applied: Mapping[str, Any]
    """What :mod:`harness.jaxhooks.remedies` gets besides the function."""
    left_out: Sequence[Built] | None = None
    """The builds that it leaves out, if not all that have the cause."""


class Pair(NamedTuple):
    """Two builds of a function, the earlier one first."""

    old: Built
    new: Built

    @property
    def is_changed(self) -> bool:
        """Whether the program is another one, or one of those that differ in constants alone."""
        several = len(self.new.process.variants.get(self.new.alike, ())) > 1
        return several or self.old.line.program != self.new.line.program


class Difference(NamedTuple):
    """One thing that is not as it was."""

    kind: Kind
    change: Cause
    sets_off: str
    """The first stages it can set off: letters of T(race), L(ower), C(ompile)."""
    item: Any = None
    """What was compared, as it was recorded."""


Look = Callable[[Pair, Any], Iterable[Cause] | None]
"""Gets two builds and what is in a place; None where that is another cause's."""

RemedyOf: TypeAlias = "str | Callable[[Pair, Cause, Any], Remedy | None]"
"""A code, which is then about the argument; or what finds the remedy of two builds, a change and
what was compared."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A cause as such."""

    name: str
    blameless: bool = False
    """Whether a build that has it is one that any program pays."""
    apart: bool = False
    """Whether builds are a finding for each argument, as each is changed in another place."""
    looks: Mapping[Place, Look] = dataclasses.field(default_factory=dict)
    """Where it can be seen as a difference from an earlier build, and what sees it."""
    sets_off: str = "L"
    """The first stages that it sets off where it is seen in one of :data:`UNTRACED`."""
    remedy: RemedyOf = ""
    instead: Callable[[Pair, list[Difference]], Cause | None] | None = None
    """The cause that it makes of all differences together, where it can."""
    foremost: bool = False
    placed: bool = False
    """Whether it is about where an array lies, of which one thing is named."""
    weight: int = 2
    tried: Callable[[Cause, Sequence[Built]], WithoutEdit | None] | None = None
    """How `harness profile try` applies the remedy without an edit, given all builds of the
    function; None where it cannot."""

    def remedy_of(self, pair: Pair, difference: Difference) -> Remedy | None:
        """Return what to do about a difference; None where nothing is known."""
        if isinstance(self.remedy, str):
            return Remedy(self.remedy, difference.change.argument) if self.remedy else None
        return self.remedy(pair, difference.change, difference.item)
