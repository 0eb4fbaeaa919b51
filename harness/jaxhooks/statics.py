"""Static arguments, at a bounded cost, and what the user called behind `equinox.filter_jit`.

That hands JAX a function of its own, `fun_wrapped(dynamic_donate, dynamic_nodonate, static)`, with
the arrays of all arguments in two dictionaries and everything else in one static tuple: in JAX's
words every change is one of `static`. Written for equinox 0.13; what does not look like it is
described in JAX's words.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any, NamedTuple

from harness.jaxhooks import call_sites, jax_names, structures
from harness.jaxhooks.events import LONGEST_VALUE, Dynamic, Static

MOST_KEPT = 4_096
"""Objects that cannot be referred to weakly are kept alive, this many at most."""


class Numbers:
    """Gives every object a number of its own, in the order of first appearance."""

    def __init__(self) -> None:
        self._next = itertools.count(1)
        self._known: dict[int, tuple[Any, int]] = {}
        self._kept: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._equal = functools.lru_cache(MOST_KEPT)(lambda kind, value: next(self._next))
        self._functions: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def of(self, value: Any) -> int:
        """Return the object's number: the same as long as it lives, or is among the last ones."""
        address = id(value)
        entry = self._known.get(address)
        if entry is not None and entry[0]() is value:
            return entry[1]
        kept = self._kept.get(address)
        if kept is not None and kept[0] is value:
            return kept[1]
        number = next(self._next)
        try:
            reference = weakref.ref(value, lambda _: self._known.pop(address, None))
        except TypeError:  # tuples and the like: kept alive, so that no other takes the address
            self._kept[address] = (value, number)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return number
        self._known[address] = (reference, number)
        return number

    def of_function(self, function: Any) -> int:
        """Return the number of what was jitted: that of an equal one, while that lives.

        JAX keeps what it builds by a weak reference to the function, and finds it again by an
        equal one: two bound methods of one object, say.
        """
        kind: Any = type(function)
        if kind.__eq__ is object.__eq__:
            return self.of(function)
        try:
            number = self._functions.get(function)
            if number is None:
                number = self._functions[function] = self.of(function)
            return number
        except Exception:  # no hash, or the user's own __eq__ raised
            return self.of(function)

    def of_equal(self, value: Any) -> int:
        """Return one number for all objects of a type that are equal, as JAX's caches take them.

        Calls the object's `__hash__` and `__eq__`, as JAX does, and may raise what they raise.
        """
        kind: Any = type(value)
        if kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__:
            return self.of(value)
        return self._equal(kind, value)


DEEPEST, MOST_FIELDS = 3, 100
"""How deep a value is taken apart, and into how many fields at each step."""


def split(
    info: Any, positions: set[int], args: Sequence[Any], kwargs: Mapping[str, Any], objects: Numbers
) -> tuple[Static, ...]:
    """Return the static arguments of a call, the positional ones given by their positions."""
    signature, names = info.fun_signature, info.static_argnames
    given = [
        (call_sites.parameter_name(signature, number), args[number], False)
        for number in sorted(positions)
        if number < len(args)
    ]
    given += [(name, value, True) for name, value in kwargs.items() if name in names]
    return tuple(
        replace(one, keyword=keyword)
        for name, value, keyword in given
        for one in _taken_apart(name, value, objects)
    )


def _taken_apart(name: str, value: Any, objects: Numbers, level: int = 0) -> Iterator[Static]:
    """Yield a static argument: field by field, where it is equal if all its fields are."""
    fields = structures.compared_fields(value) if level < DEEPEST else ()
    if not fields or len(fields) > MOST_FIELDS:
        yield static(name, value, objects)
        return
    label = structures.type_label(type(value))
    yield Static(name, label, f"<{label}>", 0, number=structures.number_of(type(value), label))
    for field in fields:
        path, one = f"{name}.{field}", getattr(value, field)
        if structures.is_shown(type(value), field):
            yield from _taken_apart(path, one, objects, level + 1)
        else:
            yield static(path, one, objects, shown=False)


def parameters(function: Any, objects: Numbers) -> tuple[Static, ...]:
    """Return the parameters of one of JAX's operations that runs by itself.

    JAX finds what it built for it by these; they are in the closure of the function that it jits.
    """
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values: Mapping[str, Any] = dict(cells)["params"].cell_contents
    return tuple(static(name, value, objects) for name, value in sorted(values.items()))


def static(name: str, value: Any, objects: Numbers, shown: bool = True) -> Static:
    """Return a static argument as it is written down."""
    kind = type(value)
    text = structures.static_text(value) if shown else structures.NOT_SHOWN
    number, equality = 0, ""
    plain = kind in structures.PLAIN and value == value  # no NaN
    if not shown or not plain or len(text) >= LONGEST_VALUE:
        try:
            number, equality = objects.of_equal(value), structures.equality_of(kind)
        except Exception:  # no hash, or the user's own __eq__ raised: JAX refuses it, too
            number = objects.of(value)
    label = structures.type_label(kind)
    which = 1 if plain else structures.number_of(kind, label)
    return Static(name, label, text, number, equality=equality, number=which)


# --- equinox.filter_jit ---------------------------------------------------------------------------

_PARTS = ("first", "fun", "rest")
"""Keys of the dictionaries, in the order in which JAX flattens them."""


class FilteredCall(NamedTuple):
    """A call of what `filter_jit` made, in the user's own words."""

    function: Any
    trees: tuple[Dynamic, ...]
    paths: tuple[str, ...]
    statics: tuple[tuple[str, Any], ...]
    """Everything that is no array, by its name."""


def filtered_call(function: Any, args: Sequence[Any]) -> FilteredCall | None:
    """Return the user's call, None where JAX was called by another than `filter_jit`."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code.co_name != "fun_wrapped" or len(args) != 3:
        return None
    if not code.co_filename.replace("\\", "/").endswith("equinox/_jit.py"):
        return None
    donated, kept, static = args
    if not isinstance(donated, dict) or not isinstance(kept, dict):
        return None
    dynamic = {**donated, **kept}
    if set(dynamic) != set(_PARTS) or len(static) != len(_PARTS):
        return None
    jax = jax_names.public()
    parts = {}
    for name, (fixed, structure) in zip(("fun", "first", "rest"), static, strict=True):
        both = zip(dynamic[name], fixed, strict=True)
        parts[name] = structure.unflatten(
            [_Leaf(a, True) if value is None else _Leaf(value, False) for a, value in both]
        )
    users = jax.tree.map(lambda leaf: leaf.value, parts["fun"])
    own = (call_sites.name_of(users) or type(users).__name__, parts["fun"])
    rest, keywords = parts["rest"]
    positional = [parts["first"], *rest][:-1]  # equinox puts a None behind the last
    signature = _signature(users)
    named = [(call_sites.parameter_name(signature, n), value) for n, value in enumerate(positional)]
    by_keyword = len(named)
    named += keywords.items()
    first = len(positional[:1])
    leaves = {
        part: [leaf for name, value in given for leaf in _leaves(name, value)]
        for part, given in (("fun", [own]), ("first", named[:first]), ("rest", named[first:]))
    }
    trees = [
        Dynamic(name, structures.structure(jax.tree.structure(value)), number >= by_keyword)
        for number, (name, value) in enumerate(named)
    ]
    if not isinstance(parts["fun"], _Leaf):
        name, value = own
        trees.insert(0, Dynamic(name, structures.structure(jax.tree.structure(value))))
    return FilteredCall(
        users,
        tuple(trees),
        tuple(
            path
            for part in (donated, kept)
            for name in sorted(part)
            for path, leaf in leaves[name]
            if leaf.is_array
        ),
        tuple(
            (path, leaf.value)
            for part in leaves.values()
            for path, leaf in part
            if not leaf.is_array and leaf.value is not users
        ),
    )


class _Leaf:
    """Stands for a leaf, so that no value of the user's is taken for a container."""

    def __init__(self, value: Any, is_array: bool) -> None:
        self.value, self.is_array = value, is_array


def _leaves(name: str, value: Any) -> list[tuple[str, _Leaf]]:
    jax = jax_names.public()
    flat, _ = jax.tree_util.tree_flatten_with_path(value)
    return [(name + jax.tree_util.keystr(path), leaf) for path, leaf in flat]


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
