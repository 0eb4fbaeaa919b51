"""What JAX looks a program up by, as small numbers: two builds are alike where they are equal."""

from collections.abc import Hashable
from typing import NamedTuple

from harness.profiles.causes.arrays import committed
from harness.profiles.model import Built
from harness.watch import events

TRACED = 6
"""The first six aspects decide whether a function is traced anew."""

STATIC = ("static_argnums", "static_argnames")

IGNORED = (
    "jax_platforms",
    "jax_compilation_cache_dir",
    "jax_enable_compilation_cache",
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
)
"""Settings that are recorded, but that JAX does not look at before it takes from its caches."""


class Aspects(NamedTuple):
    """Each a number that stands for a text or an object; equal numbers are equal aspects."""

    function_object: int
    statics_chosen: int
    context: int
    tree: int
    statics: int
    types: int
    placement: int
    options: int

    @property
    def traced(self) -> tuple[int, ...]:
        """What a trace is looked up by."""
        return self[:TRACED]


class Interning:
    """Gives equal things equal numbers, and remembers what it was asked of one process."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._arguments: dict[int, tuple[int, int, int, int]] = {}
        self._settings: dict[int, tuple[int, int, int]] = {}

    def _number(self, *thing: Hashable) -> int:
        return self._numbers.setdefault(thing, len(self._numbers) + 1)

    def of(self, built: Built) -> Aspects:
        """Return the aspects of a build."""
        tree, statics, types, placement = self._of_arguments(built.arguments)
        chosen, context, options = self._of_settings(built.settings)
        number = 0 if built.operation else built.line.object
        if built.derived:
            number = built.line.derived
        return Aspects(number, chosen, context, tree, statics, types, placement, options)

    def _of_arguments(self, line: events.Arguments | None) -> tuple[int, int, int, int]:
        if line is None:
            return 0, 0, 0, 0
        known = self._arguments.get(line.id)
        if known is None:
            known = self._arguments[line.id] = (
                self._number("tree", line.tree),
                self._number("statics", *map(static_key, line.statics)),
                self._number("types", *((leaf.path, leaf.aval, leaf.weak) for leaf in line.leaves)),
                self._number("placement", *map(_placement_key, line.leaves)),
            )
        return known

    def _of_settings(self, line: events.Settings | None) -> tuple[int, int, int]:
        if line is None:
            return 0, 0, 0
        known = self._settings.get(line.id)
        if known is None:
            jit, context = sorted(line.jit.items()), sorted(line.context.items())
            known = self._settings[line.id] = (
                self._number("chosen", *(pair for pair in jit if pair[0] in STATIC)),
                self._number("context", *(pair for pair in context if pair[0] not in IGNORED)),
                self._number("options", *(pair for pair in jit if pair[0] not in STATIC)),
            )
        return known


def static_key(static: events.Static) -> tuple[Hashable, ...]:
    """Return what a static argument is told apart by: JAX's own equality, where it is known."""
    if static.object:
        return static.name, static.keyword, static.type, static.object
    return static.name, static.keyword, static.type, static.value


def _placement_key(leaf: events.Leaf) -> tuple[Hashable, ...]:
    """Return where an argument lies, as far as JAX looks at it: not, if it may move it."""
    return committed(leaf), leaf.sharding if committed(leaf) else "", leaf.layout
