"""What a jitted function can be shipped as: made for the arguments of a call, and called later.

In place of `harness.ship.programs`, whose cases are known beforehand, this ships what a program
passes: static arguments, and trees whose fixed fields hold models, optimisers and functions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.watch import jax_names

SERIALIZE = "jax.experimental.serialize_executable"


def _make_executable(jitted: Any, args: Any, kwargs: Any) -> bytes:
    compiled = jitted.lower(*args, **kwargs).compile()
    payload, _, out_tree = jax_names.public(SERIALIZE).serialize(compiled)
    leaves = jax_names.public().tree.leaves((compiled.input_shardings, compiled.output_shardings))
    devices = {device.id for sharding in leaves for device in sharding.device_set}
    return pickle.dumps((payload, _packed(split(jitted, args, kwargs), out_tree), devices))


def _call_executable(stored: bytes, args: Any, kwargs: Any, static: Any, jit: Any) -> Any:
    payload, out_tree, ids = pickle.loads(stored)
    in_tree = jax_names.public().tree.structure((args, kwargs))
    devices = [one for one in jax_names.public().devices() if one.id in ids]
    loaded = jax_names.public(SERIALIZE).deserialize_and_load(
        payload,
        in_tree,
        _unpacked((args, kwargs, static), out_tree),
        execution_devices=devices or jax_names.public().devices()[:1],
    )
    return loaded(*args, **kwargs)


def _make_export(jitted: Any, args: Any, kwargs: Any) -> bytes:
    made: Any = jax_names.public("jax.export").export(jitted)(*args, **kwargs)
    structure = jax_names.public().tree.structure
    # Its own form of trees knows only types that were registered with it.
    flat = dataclasses.replace(
        made,
        in_tree=structure(((0,) * made.in_tree.num_leaves, {})),
        out_tree=structure([0] * made.out_tree.num_leaves),
    )
    infos = jax_names.public().tree.leaves(jitted.lower(*args, **kwargs).args_info)
    donated = [number for number, info in enumerate(infos) if info.donated]
    trees = _packed(split(jitted, args, kwargs), made.out_tree)
    return pickle.dumps((bytes(flat.serialize()), trees, donated))


def _call_export(stored: bytes, args: Any, kwargs: Any, static: Any, jit: Any) -> Any:
    program, out_tree, donated = pickle.loads(stored)
    leaves = jax_names.public().tree.leaves((args, kwargs))
    call = jax_names.public("jax.export").deserialize(bytearray(program)).call
    result = jit(call, donate_argnums=donated)(*leaves)
    return jax_names.public().tree.unflatten(_unpacked((args, kwargs, static), out_tree), result)


@dataclass(frozen=True)
class ShippedForm:
    """One form of a function.

    Attributes:
        make: Returns what is shipped, of the jitted function and the arguments of a call.
        call: Answers a call, from what was shipped, the arguments, static ones apart, and
            `jax.jit` itself.
    """

    make: Callable[[Any, Any, Any], bytes]
    call: Callable[[bytes, Any, Any, Any, Any], Any]


FORMS = {
    "export": ShippedForm(_make_export, _call_export),
    "executable": ShippedForm(_make_executable, _call_executable),
}


def split(jitted: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the arguments without the static ones, which what is compiled has in it, and those."""
    positions, names = jax_names.static_arguments(jitted)
    positions = [n % len(args) for n in positions if -len(args) <= n < len(args)]
    static = [args[n] for n in positions] + [kwargs[name] for name in names if name in kwargs]
    kept = tuple(one for n, one in enumerate(args) if n not in positions)
    return kept, {name: one for name, one in kwargs.items() if name not in names}, static


class _Pickler(pickle.Pickler):
    """Writes the objects in fixed fields, as models and optimisers are full of, as numbers.

    A process that has the program's source has these objects, in the trees of its arguments; many
    of them pickle refuses.
    """

    def __init__(self, file: Any, known: list[Any], closed: bool = False) -> None:
        super().__init__(file)
        self.known, self.closed = known, closed

    def persistent_id(self, value: Any) -> int | None:
        if isinstance(value, (*_BY_VALUE, jax_names.public().tree_util.PyTreeDef)):
            return None
        found = next((n for n, one in enumerate(self.known) if one is value), None)
        if found is not None or self.closed:
            return found  # None: pickle writes it, or says why not
        self.known.append(value)
        # What is in it may be in a result by itself; what pickle refuses is not looked into.
        with contextlib.suppress(Exception):
            _Pickler(io.BytesIO(), self.known).dump(value.__reduce_ex__(4))
        return len(self.known) - 1


_BY_VALUE = (
    *(type, type(None), bool, int, float, complex, str, bytes),
    *(tuple, list, dict, set, frozenset),
)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, known: list[Any]) -> None:
        super().__init__(file)
        self.known = known

    def persistent_load(self, number: int) -> Any:
        return self.known[number]


def _packed(given: tuple[Any, Any, Any], out_tree: Any) -> bytes:
    """Return the tree of a result; what is in it and in the arguments, as :func:`split`, apart."""
    file = io.BytesIO()
    _Pickler(file, _objects(given), closed=True).dump(out_tree)
    return file.getvalue()


def _unpacked(given: tuple[Any, Any, Any], stored: bytes) -> Any:
    return _Unpickler(io.BytesIO(stored), _objects(given)).load()


def _objects(given: tuple[Any, Any, Any]) -> list[Any]:
    """Return the objects in the fixed fields of arguments, in their own order."""
    args, kwargs, static = given
    known: list[Any] = []
    in_tree = jax_names.public().tree.structure((args, kwargs))
    _Pickler(io.BytesIO(), known).dump((in_tree, static))
    return known
