"""Structures of pytrees, and objects of the user's as text: no code of the user's is called."""

from __future__ import annotations

import collections
import contextlib
import dis
import functools
import itertools
import re
import time
import weakref
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any

from harness.jaxhooks import jax_names
from harness.jaxhooks.call_sites import JITTED_AT, code_of, origin_of, owner_of
from harness.jaxhooks.events import LONGEST_VALUE, FixedField, Tree

_PLAIN_NODES = {tuple: "tuple", list: "list", type(None): "None"}

DEEPEST_FIELDS = 3
"""How deep fixed fields are taken apart into their own."""

DEEPEST = 6
"""How deep what a fixed field holds is taken apart."""

MOST_VALUES = 2_000

MOST_STATIC_VALUES = 200

NOT_SHOWN = "<not shown>"
"""In place of a field that its class keeps out of its `repr`."""

SLOW_S = 0.005
"""A type whose `repr` once took longer is not asked again."""

PLAIN: tuple[Any, ...] = (bool, int, float, complex, str, bytes, type(None))
"""Types whose `repr` shows the whole value."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""What tells nothing to a reader, and is another in each run."""

_slow: set[type] = set()

_kinds: dict[str, list[weakref.ref[type]]] = {}


def structure(tree: Any) -> Tree | None:
    """Return one of JAX's trees as data; None for an array."""
    return _Text().tree(tree)


def static_text(value: Any) -> str:
    """Return what a value is, in at most `LONGEST_VALUE` characters; it never raises.

    What equals itself alone is named by where it is from, and no address is shown.
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


def number_of(kind: type, label: str) -> int:
    """Return which type of its name it is: a function, or a cell of a notebook, makes several."""
    namesakes = _kinds.setdefault(label, [])
    number = next((n for n, one in enumerate(namesakes, 1) if one() is kind), 0)
    if not number:
        namesakes.append(weakref.ref(kind))
        number = len(namesakes)
    return number


def has_fields(kind: Any) -> bool:
    """Return whether a type is shown by its fields: its `repr` is the user's, or calls theirs."""
    if kind is functools.partial or _described_fields(kind) or _is_named_tuple(kind):
        return True
    code = getattr(kind.__repr__, "__code__", None)
    return code is not None and origin_of(code.co_filename) == "program"


def is_shown(kind: Any, field: str) -> bool:
    """Return whether a class lets its field be shown: `dataclasses.field(repr=False)` does not."""
    description = _described_fields(kind).get(field)
    return description is None or description.repr


class _Text:
    """One text, of at most so many values."""

    def __init__(self, left: int = MOST_VALUES, by_place: bool = False) -> None:
        self.left, self.by_place = left, by_place

    def tree(self, tree: Any) -> Tree | None:
        node = tree.node_data()
        if node is None:
            return None
        kind, fixed = node
        children = tuple([self.tree(child) for child in tree.children()])
        if kind in _PLAIN_NODES:
            return Tree(_PLAIN_NODES[kind], children)
        if kind is dict:
            return Tree("dict", children, self._keys(fixed))
        label = type_label(kind)
        number = number_of(kind, label)
        if fixed is None and _is_named_tuple(kind):
            return Tree(label, children, kind._fields, number=number)
        if kind is collections.OrderedDict:
            return Tree(label, children, self._keys(fixed))
        if kind is collections.defaultdict:
            factory, keys = fixed
            fields = FixedField("default_factory", self.value(factory, DEEPEST))
            return Tree(label, children, self._keys(keys), (fields,))
        return Tree(label, children, *self._named(kind, len(children), fixed), number)

    def _keys(self, keys: Iterable[Any]) -> tuple[str, ...]:
        return tuple([self.value(key, DEEPEST) for key in keys])

    def _named(
        self, kind: type, children: int, fixed: Any
    ) -> tuple[tuple[str, ...], tuple[FixedField, ...]]:
        """Return the names of a class's children, and its fixed fields, those without one first."""
        if fixed is None:
            return _names(kind, children, 0)[0], ()
        pairs: Iterable[tuple[str, Any]] = [("", fixed)]
        if type(fixed) is tuple:
            if len(fixed) == children and set(fixed) <= _attributes(kind):
                return fixed, ()  # its aux data are the names of the others
            names, fixed_names = _names(kind, children, len(fixed))
            unnamed = [""] * (len(fixed) - len(fixed_names))
            pairs = zip([*unnamed, *fixed_names], fixed, strict=True)
        elif type(fixed) is dict:
            names, pairs = _names(kind, children, 0)[0], [(str(n), one) for n, one in fixed.items()]
        else:
            names = _names(kind, children, 1)[0]
            pairs = [(next(iter(_names(kind, children, 1)[1]), ""), fixed)]
        fields = [one for name, value in pairs for one in self._fields(kind, name, name, value, 0)]
        return names, tuple(fields)

    def _fields(
        self, kind: type, path: str, name: str, value: Any, level: int
    ) -> Iterator[FixedField]:
        """Yield a fixed field of a class: field by field, where it is equal if these are."""
        if not is_shown(kind, name):
            yield FixedField(path, NOT_SHOWN)
            return
        inside = compared_fields(value) if path and level < DEEPEST_FIELDS else ()
        if not inside or self.left < len(inside):
            yield FixedField(path, self.value(value, DEEPEST))
            return
        self.left -= 1
        yield FixedField(path, f"<{type_label(type(value))}>")
        for one in inside:
            below = type(value), f"{path}.{one}", one, getattr(value, one)
            yield from self._fields(*below, level + 1)

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
                place = code.co_filename, code.co_firstlineno
                if kind.__name__ == "PjitFunction":
                    place = getattr(value, JITTED_AT, place)
                file, line = place
                return f"<{name} at {file}:{line}>"
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


def _described_fields(kind: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, or of a class of attrs."""
    attributes = {one.name: one for one in getattr(kind, "__attrs_attrs__", ())}
    return getattr(kind, "__dataclass_fields__", attributes)


def _is_compared(field: Any) -> bool:
    return bool(getattr(field, "compare", None) or getattr(field, "eq", None))


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    kind: Any = type(value)
    own = _described_fields(kind)
    if own:
        names: Iterable[str] = [name for name, one in own.items() if one.repr or _is_compared(one)]
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


def compared_fields(value: Any) -> tuple[str, ...]:
    """Return the fields that are compared where a value is; none where it is compared otherwise."""
    kind: Any = type(value)
    if isinstance(value, tuple):
        return tuple(getattr(kind, "_fields", ())) if kind.__eq__ is tuple.__eq__ else ()
    fields = _described_fields(kind)
    if not fields or kind.__eq__ is object.__eq__ or equality_of(kind):
        return ()
    return tuple(field.name for field in fields.values() if _is_compared(field))


def equality_of(kind: Any) -> str:
    """Return where the `__eq__` of a type is written; empty for Python's and generated ones."""
    code = getattr(kind.__eq__, "__code__", None)
    if code is None or owner_of(code) is None:
        return ""
    return f"{code.co_filename}:{code.co_firstlineno}"


# --- names of what a class has, which JAX's trees do not hold -------------------------------------


def _attributes(kind: Any) -> set[Any]:
    return {*_described_fields(kind), *getattr(kind, "__slots__", ())}


@functools.lru_cache(maxsize=1_000)
def _names(kind: Any, children: int, fixed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a class's children, and of the last of its fixed fields, as far as known.

    They stand in what the function closes over that takes its objects apart (JAX's own dataclasses,
    flax's, mujoco's), in the class (equinox's), or are the attributes that the function reads.
    """
    named = _closed_over(jax_names.flattener(kind))
    groups = list(named.values())
    given = named.get("data_fields", ()), named.get("meta_fields", ())
    if (len(given[0]), len(given[1])) == (children, fixed):
        return given
    pairs = itertools.permutations(groups, 2)
    sizes = [one for one in pairs if (len(one[0]), len(one[1])) == (children, fixed)]
    if len(sizes) == 1 and children != fixed:
        return sizes[0]
    own = _described_fields(kind).values()
    static = [
        one.name
        for one in own
        if one.metadata.get("static") or one.metadata.get("pytree_node") is False
    ]
    if own and len(static) <= fixed and len(own) - len(static) == children:
        return tuple(one.name for one in own if one.name not in static), tuple(static)
    read = _read_by(kind)
    if len(read) == children + fixed:
        return read[:children], read[children:]
    return (), ()


def _closed_over(function: Any, level: int = 0) -> dict[str, tuple[str, ...]]:
    """Return the lists of names that a function and those in it close over, by the variable."""
    names_by_variable: dict[str, tuple[str, ...]] = {}
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), cells or (), strict=False):
        try:
            held = cell.cell_contents
        except ValueError:  # not yet bound
            continue
        if isinstance(held, list | tuple):
            names = [one if type(one) is str else getattr(one, "name", None) for one in held]
            if all(type(one) is str for one in names):
                names_by_variable.setdefault(name, tuple(map(str, names)))
        elif level < DEEPEST_FIELDS and isinstance(held, FunctionType):
            names_by_variable = {**_closed_over(held, level + 1), **names_by_variable}
    return names_by_variable


def _read_by(kind: Any) -> tuple[str, ...]:
    """Return the attributes that the function reads in one expression, in that order; or none."""
    function = jax_names.flattener(kind)
    code = getattr(function, "__code__", None) or getattr(
        getattr(kind, "tree_flatten", None), "__code__", None
    )
    if code is None or code.co_argcount != 1:
        return ()
    steps = [*dis.get_instructions(code)]
    if any(one.opname.startswith(("STORE", "CALL", "FOR")) for one in steps):
        return ()
    pairs = itertools.pairwise(steps)
    return tuple(
        str(after.argval)
        for before, after in pairs
        if before.opname.startswith("LOAD_FAST") and after.opname == "LOAD_ATTR"
    )
