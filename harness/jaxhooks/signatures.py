"""What a jitted function was called with, in the words of the one who called it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.jaxhooks.call_sites import parameter_name
from harness.jaxhooks.events import Dynamic, Leaf
from harness.jaxhooks.jax_names import array_type, public
from harness.jaxhooks.structures import structure

_ARGUMENTS = ("donate_argnums", "donate_argnames", "static_argnums", "static_argnames")
_PLACES = ("in_shardings", "out_shardings", "in_layouts", "out_layouts")
_OTHERS = ("device", "backend", "keep_unused", "inline", "compiler_options_kvs")
_OPTIONS = (*_ARGUMENTS, *(f"{one}_leaves" for one in _PLACES), *_PLACES, *_OTHERS)
"""Fields of JAX's own record of what `jax.jit` was given, and of what it hands on to lowering."""

_MOST_TEXTS = 5_000

_CONSTANTS = {
    "TypedInt": "int",
    "TypedFloat": "float",
    "TypedComplex": "complex",
    "TypedNdArray": "numpy.ndarray",
}
"""What JAX turns Python's and NumPy's values into, before it hands them to its own functions."""


class Texts:
    """Texts of types and placements, made once: they repeat from call to call."""

    def __init__(self) -> None:
        jax = public()
        self._tracer, self._array = jax.core.Tracer, array_type()
        self._abstractify: Any = jax.api_util.shaped_abstractify
        self._known = functools.lru_cache(_MOST_TEXTS)(lambda make, value: str(make(value)))
        self._kinds: dict[type, str] = {}

    def leaf(self, path: str, value: Any, aval: Any, format_: Any = None) -> Leaf:
        """Return an array as it is written down; its data are not looked at."""
        kind = type(value)
        label = self._kinds.get(kind)
        if label is None:
            label = self._kinds[kind] = self._label(kind)
        if aval is None:
            aval = self._aval(value)
        if label == "jax.Array" or kind is self._array:
            committed = bool(getattr(value, "_committed", True))
            return self._leaf(
                path, label, aval, committed, getattr(value, "sharding", None), format_
            )
        sharding = getattr(value, "sharding", None) if "ShapeDtype" in label else None
        return self._leaf(path, label, aval, False, sharding, None)

    def placed(self, path: str, meta: Any, kind: str) -> Leaf:
        """Return an array as lowering sees it, where its value is not at hand."""
        committed = bool(meta.committed) and meta.sharding is not None
        return self._leaf(path, kind, meta.aval, committed, meta.sharding, meta.format)

    def _leaf(
        self, path: str, kind: str, aval: Any, committed: bool, sharding: Any, format_: Any
    ) -> Leaf:
        text = self._of(aval, aval_text) if aval is not None else kind
        weak = bool(getattr(aval, "weak_type", False))
        layout = self._of(getattr(format_, "layout", None), layout_text)
        return Leaf(path, text, weak, kind, committed, self._of(sharding, sharding_text), layout)

    def _aval(self, value: Any) -> Any:
        """Return the type that JAX gives a value; None where it takes no such value."""
        try:
            return self._abstractify(value)
        # Whatever a user passes may do anything when it is looked at.
        except Exception:
            return getattr(value, "aval", None)

    def _label(self, kind: type) -> str:
        if issubclass(kind, self._tracer):
            return "tracer"
        if issubclass(kind, self._array):
            return "jax.Array"
        if kind.__module__ == "builtins":
            return kind.__name__
        if kind.__module__.partition(".")[0] == "jax":
            return _CONSTANTS.get(kind.__name__, f"jax.{kind.__name__}")
        return f"{kind.__module__}.{kind.__name__}"

    def _of(self, value: Any, make: Any) -> str:
        if value is None:
            return ""
        try:
            return self._known(make, value)
        except Exception:  # no hash, or no text: a type of a user's own
            try:
                return str(make(value))
            except Exception:
                return f"<{type(value).__name__}>"


def aval_text(aval: Any) -> str:
    """Return JAX's type of an array, with the mesh where one is part of it."""
    if not hasattr(aval, "str_short"):
        return str(aval)
    mesh = getattr(getattr(aval, "sharding", None), "mesh", None)
    if mesh is None or getattr(mesh, "empty", True):
        return str(aval.str_short())
    return str(aval.str_short(False, True))


def sharding_text(sharding: Any) -> str:
    """Return a sharding: its kind, how axes are laid over the mesh, its devices by number."""
    kind = type(sharding).__name__
    if kind == "UnspecifiedValue":
        return ""
    inside = []
    spec = getattr(sharding, "spec", None)
    if spec is not None:
        inside.append(str(spec))
    mesh = getattr(sharding, "mesh", None)
    if mesh is not None:
        inside.append(mesh_axes(mesh))
    text = f"{kind}({'; '.join(inside)})"
    devices = devices_text(getattr(sharding, "_device_assignment", None) or ())
    memory = getattr(sharding, "memory_kind", None)
    text = f"{text} on {devices}" if devices else text
    return f"{text} in {memory}" if memory not in (None, "device", "unpinned_host") else text


def mesh_axes(mesh: Any) -> str:
    """Return a mesh's axes with their sizes and types: `data=4 auto, model=2 explicit`."""
    types = [str(getattr(one, "name", one)).lower() for one in mesh.axis_types]
    axes = zip(mesh.axis_names, mesh.axis_sizes, types, strict=True)
    return ", ".join(f"{name}={size} {how}" for name, size, how in axes)


def mesh_text(mesh: Any) -> str:
    """Return a mesh with its devices, where it has some."""
    devices = getattr(mesh, "devices", None)
    if devices is None:
        return mesh_axes(mesh)
    return f"{mesh_axes(mesh)} on {devices_text(devices.flat)}"


def devices_text(devices: Iterable[Any]) -> str:
    """Return devices by platform and number, a row of them as `cpu:0-7`."""
    devices = tuple(devices)
    if not devices:
        return ""
    numbers = [device.id for device in devices]
    platform = devices[0].platform
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{platform}:{numbers[0]}-{numbers[-1]}"
    return f"{platform}:{','.join(map(str, numbers))}"


def layout_text(layout: Any) -> str:
    """Return the order of an array's axes in memory, empty where it is the usual one."""
    order = getattr(layout, "major_to_minor", None)
    if order is None:
        return "automatic" if "Auto" in type(layout).__name__ else ""
    return "" if tuple(order) == tuple(range(len(order))) else str(tuple(order))


def arguments_of(signature: Any, in_tree: Any, static_positions: set[int]) -> tuple[Dynamic, ...]:
    """Return the dynamic arguments by name, each with its structure.

    `in_tree` is JAX's tree of (positional, by keyword), without static arguments.
    """
    positional, by_keyword = in_tree.children()
    dynamic = []
    position = 0
    for tree in positional.children():
        while position in static_positions:
            position += 1
        dynamic.append(Dynamic(parameter_name(signature, position), structure(tree)))
        position += 1
    names = by_keyword.node_data()[1] if by_keyword.node_data() else ()
    for name, tree in zip(names, by_keyword.children(), strict=True):
        dynamic.append(Dynamic(name, structure(tree), True))
    return tuple(dynamic)


def flattened(
    signature: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    static_positions: set[int],
    static_names: Sequence[str],
) -> tuple[tuple[Dynamic, ...], list[tuple[str, Any]]]:
    """Return the :func:`arguments_of` and the named arrays of arguments that JAX failed on."""
    jax = public()
    dynamic = {n: value for n, value in enumerate(args) if n not in static_positions}
    by_keyword = {name: kwargs[name] for name in sorted(kwargs) if name not in static_names}
    tree = jax.tree_util.tree_structure((tuple(dynamic.values()), by_keyword))
    named = [(parameter_name(signature, number), value) for number, value in dynamic.items()]
    leaves = []
    for name, value in (*named, *by_keyword.items()):
        for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]:
            leaves.append((name + jax.tree_util.keystr(path), leaf))
    return arguments_of(signature, tree, static_positions), leaves


def jit_options(options: Any) -> dict[str, str]:
    """Return what `jax.jit` was given, where it is not the default."""
    shown = {}
    for name in _OPTIONS:
        value = options.get(name) if isinstance(options, dict) else getattr(options, name, None)
        if value is None or value is False or value == ():
            continue
        text = _option_text(value)
        if text:
            shown[name.removesuffix("_leaves").removesuffix("_kvs")] = text
    return shown


def _option_text(value: Any) -> str:
    if isinstance(value, tuple) and value and not isinstance(value[0], (int, str)):
        if isinstance(value[0], tuple):  # compiler options
            return ", ".join(f"{name}={setting}" for name, setting in value)
        texts = [_option_text(one) for one in value]
        return ", ".join(text or "-" for text in texts) if any(texts) else ""
    if value is None or getattr(value, "name", "") == "AUTO":
        return ""
    if type(value).__name__ == "UnspecifiedValue":
        return ""
    if hasattr(value, "_device_assignment") or hasattr(value, "spec"):
        return sharding_text(value)
    if hasattr(value, "major_to_minor"):
        return str(tuple(value.major_to_minor))
    return str(value)
