"""Structures of pytrees and objects of the user's as text: no code of the user's is called."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import time
import weakref
from collections.abc import Iterable, Iterator
from types import MethodType
from typing import Any

from harness.watch import jax_names
from harness.watch.call_sites import code_of, origin_of
from harness.watch.events import LONGEST_VALUE

DEEPEST = 6
"""How deep what a fixed field holds is taken apart."""

MOST_VALUES = 2_000
"""Values in the fixed fields of one structure that are told."""

MOST_STATIC_VALUES = 200

NOT_SHOWN = "<not shown>"
"""In place of a field that its class keeps out of its `repr`."""

SLOW_S = 0.005
"""A type whose `repr` once took longer is not asked again."""

PLAIN: tuple[Any, ...] = (bool, int, float, complex, str, bytes, type(None))
"""Types whose `repr` says all there is to say."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""What tells nothing to a reader, and is another in each run."""

_slow: set[type] = set()

_kinds: dict[str, list[weakref.ref[type]]] = {}
"""Classes of pytrees by their names."""


def structure_text(tree: Any) -> str:
    """Return what `str` says of JAX's tree, with names where a class has fixed fields."""
    return _Text().tree(tree)


def static_text(value: Any) -> str:
    """Return what a value is, in at most `LONGEST_VALUE` characters; it never raises.

    What equals itself alone is told by where it is from, and no address is shown.
    """
    try:
        if type(value) in PLAIN:
            return repr(value)[:LONGEST_VALUE]
        text = _Text(MOST_STATIC_VALUES, by_place=True).value(value, DEEPEST)
        return _ADDRESS.sub("", text)[:LONGEST_VALUE]
    except Exception as error:  # methods of the user's own
        return f"<{type_label(type(value))}: its repr raised {type(error).__name__}>"


def type_label(kind: type) -> str:
    """Return a type's name, with its module where it is not the user's own or Python's."""
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _numbered(kind: type) -> str:
    """Return a type's name, with a number from the second type of that name on: `Box#2`.

    As of a class that a function makes, or a cell of a notebook that is run again.
    """
    label = type_label(kind)
    known = _kinds.setdefault(label, [])
    number = next((n for n, one in enumerate(known, 1) if one() is kind), 0)
    if not number:
        known.append(weakref.ref(kind))
        number = len(known)
    return f"{label}#{number}" if number > 1 else label


def has_fields(kind: Any) -> bool:
    """Return whether a type is told by its fields: its `repr` is the user's, or calls theirs."""
    if kind is functools.partial or hasattr(kind, "__dataclass_fields__") or _is_named_tuple(kind):
        return True
    code = getattr(kind.__repr__, "__code__", None)
    return code is not None and origin_of(code.co_filename) == "program"


def is_shown(kind: Any, field: str) -> bool:
    """Return whether a class lets its field be shown: `dataclasses.field(repr=False)` does not."""
    known = _dataclass_fields(kind).get(field)
    return known is None or known.repr


class _Text:
    """One text, of at most so many values."""

    def __init__(self, left: int = MOST_VALUES, by_place: bool = False) -> None:
        self.left, self.by_place = left, by_place

    def tree(self, tree: Any) -> str:
        node = tree.node_data()
        if node is None:
            return "*"
        kind, fixed = node
        children = [self.tree(child) for child in tree.children()]
        if kind is type(None):
            return "None"
        if kind is tuple:
            return _tuple_text(children)
        inside = ", ".join(children)
        if kind is list:
            return f"[{inside}]"
        if kind is dict:
            keys = (self.value(key, DEEPEST) for key in fixed)
            pairs = zip(keys, children, strict=True)
            return "{" + ", ".join(f"{key}: {child}" for key, child in pairs) + "}"
        if fixed is None and _is_named_tuple(kind):
            return f"CustomNode({_numbered(kind)}[namedtuple], [{inside}])"
        return f"CustomNode({_numbered(kind)}[{self._fixed(kind, fixed)}], [{inside}])"

    def _fixed(self, kind: type, fixed: Any) -> str:
        """Return the fixed fields of a class, by their names, which stand last."""
        if type(fixed) is not tuple:
            return self.value(fixed, DEEPEST)
        names = _fixed_names(kind)
        if len(names) > len(fixed):
            names = []
        named = [""] * (len(fixed) - len(names)) + [f"{name}=" for name in names]
        pairs = zip(named, fixed, strict=True)
        return _tuple_text(
            [
                name + (self.value(one, DEEPEST) if is_shown(kind, name[:-1]) else NOT_SHOWN)
                for name, one in pairs
            ]
        )

    def value(self, value: Any, level: int) -> str:
        kind: Any = type(value)
        self.left -= 1
        if kind in PLAIN:
            return repr(value)
        if level <= 0 or self.left <= 0:
            return f"<{kind.__name__}>"
        if kind in (tuple, list, set, frozenset):
            return self._container(value, level)
        if kind is dict:
            some = itertools.islice(value.items(), self.left)
            pairs = (f"{self.value(name, level)}: {self._in(one, level)}" for name, one in some)
            return "{" + ", ".join(pairs) + "}"
        return self._object(value, kind, level)

    def _in(self, value: Any, level: int) -> str:
        return self.value(value, level - 1)

    def _container(self, value: Iterable[Any], level: int) -> str:
        items = [self._in(one, level) for one in itertools.islice(value, self.left)]
        if isinstance(value, tuple):
            return _tuple_text(items)
        inside = ", ".join(items if isinstance(value, list) else sorted(items))
        return f"[{inside}]" if isinstance(value, list) else f"{{{inside}}}"

    def _object(self, value: Any, kind: Any, level: int) -> str:
        is_array = hasattr(kind, "shape") and hasattr(kind, "dtype") and hasattr(kind, "__array__")
        if is_array and value.shape:
            return f"<{type_label(kind)} {value.dtype}{list(value.shape)}>"
        alone = kind.__eq__ is object.__eq__
        if self.by_place and (alone or kind is MethodType) and callable(value):
            code = code_of(value)
            if code is not None:
                name = getattr(value, "__qualname__", "") or code.co_qualname
                return f"<{name} at {code.co_filename}:{code.co_firstlineno}>"
        if kind is MethodType:
            name = getattr(value.__func__, "__qualname__", "")
            return f"<bound method {name} of {self._in(value.__self__, level)}>"
        if kind is functools.partial:
            given = [self._in(one, level) for one in (value.func, *value.args)]
            given += [f"{name}={self._in(one, level)}" for name, one in value.keywords.items()]
            return f"functools.partial({', '.join(given)})"
        if isinstance(value, type):
            return type.__repr__(value)
        if not has_fields(kind):
            return self._repr(value, kind)
        for plain in PLAIN:
            if isinstance(value, plain):
                return str(plain.__repr__(value))
        fields = ", ".join(
            f"{name}={self._in(one, level) if is_shown(kind, name) else NOT_SHOWN}"
            for name, one in _fields(value)
        )
        if alone:  # two of them are two, whatever is in them
            return f"<{' '.join(filter(None, (kind.__qualname__, fields)))} at {id(value):#x}>"
        return f"{kind.__qualname__}({fields})" if fields else f"<{kind.__qualname__}>"

    def _repr(self, value: Any, kind: Any) -> str:
        if self.by_place and (kind in _slow or kind.__repr__ is object.__repr__):
            return f"<{type_label(kind)}>"
        begin = time.perf_counter()
        try:
            return str(repr(value))
        except Exception as error:  # a library's, or of what it calls
            return f"<{type_label(kind)}: its repr raised {type(error).__name__}>"
        finally:
            if time.perf_counter() - begin > SLOW_S:
                _slow.add(kind)


def _tuple_text(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _is_named_tuple(kind: Any) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _dataclass_fields(kind: Any) -> dict[str, Any]:
    return getattr(kind, "__dataclass_fields__", {})


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    kind: Any = type(value)
    own = _dataclass_fields(kind)
    if own:
        names: Iterable[str] = [name for name, one in own.items() if one.repr or one.compare]
    elif _is_named_tuple(kind):
        names = kind._fields
    else:
        slots = [getattr(one, "__slots__", ()) for one in kind.__mro__]
        names = [name for some in slots for name in ([some] if isinstance(some, str) else some)]
        with contextlib.suppress(AttributeError):  # slots alone
            names = [*names, *object.__getattribute__(value, "__dict__")]
        names = [name for name in names if not name.startswith("__")]
    for name in names:
        try:
            yield name, object.__getattribute__(value, name)
        except AttributeError:  # never set
            continue


@functools.lru_cache(maxsize=1_000)
def _fixed_names(kind: Any) -> list[str]:
    """Return the names of a class's fixed fields in JAX's order, as far as they are known."""
    own = _dataclass_fields(kind)
    if not own:
        return []
    told = jax_names.meta_fields(kind)
    if told is not None:
        return list(told)
    return [
        one.name
        for one in own.values()
        if one.metadata.get("static") or one.metadata.get("pytree_node") is False
    ]
