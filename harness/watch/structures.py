"""Structures of pytrees and objects of the user's as text: no code of the user's is called."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator
from types import MethodType
from typing import Any

from harness.watch import jax_names
from harness.watch.call_sites import origin_of

DEEPEST = 6
"""How deep what a fixed field holds is taken apart."""

MOST_VALUES = 2_000
"""Values in the fixed fields of one structure that are told."""

NOT_SHOWN = "<not shown>"
"""In place of a field that its class keeps out of its `repr`."""

_PLAIN = (bool, int, float, complex, str, bytes)


def structure_text(tree: Any) -> str:
    """Return what `str` says of JAX's tree, with names where a class has fixed fields."""
    return _Text().tree(tree)


def object_text(value: Any) -> str:
    """Return an object by its fields, as a dataclass has its `repr`."""
    return _Text().value(value, DEEPEST)


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

    def __init__(self) -> None:
        self.left = MOST_VALUES

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
            return f"CustomNode(namedtuple[{kind.__name__}], [{inside}])"
        return f"CustomNode({kind.__name__}[{self._fixed(kind, fixed)}], [{inside}])"

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
        if kind in _PLAIN or value is None:
            return repr(value)
        if level <= 0 or self.left <= 0:
            return f"<{kind.__name__}>"
        if kind in (tuple, list, set, frozenset):
            return self._container(value, level)
        if kind is dict:
            some = itertools.islice(value.items(), MOST_VALUES)
            pairs = (f"{self.value(name, level)}: {self._in(one, level)}" for name, one in some)
            return "{" + ", ".join(pairs) + "}"
        return self._object(value, kind, level)

    def _in(self, value: Any, level: int) -> str:
        return self.value(value, level - 1)

    def _container(self, value: Iterable[Any], level: int) -> str:
        items = [self._in(one, level) for one in itertools.islice(value, MOST_VALUES)]
        if isinstance(value, tuple):
            return _tuple_text(items)
        inside = ", ".join(items if isinstance(value, list) else sorted(items))
        return f"[{inside}]" if isinstance(value, list) else f"{{{inside}}}"

    def _object(self, value: Any, kind: Any, level: int) -> str:
        if kind is MethodType:
            name = getattr(value.__func__, "__qualname__", "")
            return f"<bound method {name} of {self._in(value.__self__, level)}>"
        if kind is functools.partial:
            given = [self._in(one, level) for one in (value.func, *value.args)]
            given += [f"{name}={self._in(one, level)}" for name, one in value.keywords.items()]
            return f"functools.partial({', '.join(given)})"
        if isinstance(value, type):
            return f"<class '{value.__module__}.{value.__qualname__}'>"
        if hasattr(kind, "shape") and hasattr(kind, "dtype") and hasattr(kind, "__array__"):
            return f"<{kind.__name__} {value.dtype}{list(value.shape)}>"
        if not has_fields(kind):
            try:
                return repr(value)
            except Exception as error:  # a library's, or of what it calls
                return f"<{kind.__qualname__}: its repr raised {type(error).__name__}>"
        for plain in _PLAIN:
            if isinstance(value, plain):
                return plain.__repr__(value)
        fields = ", ".join(
            f"{name}={self._in(one, level) if is_shown(kind, name) else NOT_SHOWN}"
            for name, one in _fields(value)
        )
        if kind.__eq__ is object.__eq__:  # two of them are two, whatever is in them
            return f"<{' '.join(filter(None, (kind.__qualname__, fields)))} at {id(value):#x}>"
        return f"{kind.__qualname__}({fields})" if fields else f"<{kind.__qualname__}>"


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
