"""Numbers for objects, so that two can be told apart after they are gone."""

import itertools
import weakref
from collections import OrderedDict
from typing import Any

MOST_KEPT = 4_096
"""Objects that cannot be referred to weakly are kept alive, this many at most."""


class Numbers:
    """Gives every object a number of its own, in the order of first appearance."""

    def __init__(self) -> None:
        self._next = itertools.count(1)
        self._known: dict[int, tuple[Any, int]] = {}
        self._kept: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._equal: OrderedDict[tuple[type, Any], int] = OrderedDict()
        self._functions: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def of(self, value: Any) -> int:
        """Return the object's number: the same as long as it lives, or is among the last ones."""
        address = id(value)
        known = self._known.get(address)
        if known is not None and known[0]() is value:
            return known[1]
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
        number = self._equal.get((kind, value))
        if number is None:
            number = self._equal[kind, value] = next(self._next)
            if len(self._equal) > MOST_KEPT:
                self._equal.popitem(last=False)
        return number
