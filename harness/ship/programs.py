"""What can be shipped: how a build machine makes it, and how a fresh process gets it back."""

from __future__ import annotations

import functools
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from harness.declare import transforms
from harness.declare.workload import static_arguments
from harness.ship import cases
from harness.stages.build import Build
from harness.stages.prepared import Prepared, wrap

NO_FLATBUFFERS = (
    "the package 'flatbuffers' is not installed, and jax.export needs it to serialise: "
    "pip install flatbuffers"
)


@dataclass(frozen=True)
class ProgramForm:
    """One form of a program.

    Attributes:
        make: Returns what is shipped, from the prepared case and its inputs; None for the source.
        load: Returns what is called, and its static arguments, from the job and what was shipped.
            JAX's own modules that this takes are imported then: a user pays for them too.
        ahead: Whether it is compiled already, so that nothing is traced, lowered or compiled.
    """

    make: Callable[[Prepared, tuple[Any, ...]], bytes] | None
    load: Callable[[dict[str, Any], Path], tuple[Any, dict[str, Any]]]
    ahead: bool = False


def _from_source(job: dict[str, Any], path: Path) -> tuple[Any, dict[str, Any]]:
    workload, (case,) = cases.read(job)
    prepared = Prepared(workload, case, (), (), None, {})
    return wrap(prepared), static_arguments(workload, case)


def _jax_export() -> Any:
    from jax import export  # not part of `import jax`

    return export


def _jax_executables() -> Any:
    from jax.experimental import serialize_executable  # not part of `import jax`

    return serialize_executable


def _make_export(prepared: Prepared, data: tuple[Any, ...]) -> bytes:
    export = _jax_export()
    return bytes(export.export(jitted(prepared))(*prepared.abstract).serialize())


def _load_export(job: dict[str, Any], path: Path) -> tuple[Any, dict[str, Any]]:
    return jax.jit(_jax_export().deserialize(bytearray(path.read_bytes())).call), {}


def _make_executable(prepared: Prepared, data: tuple[Any, ...]) -> bytes:
    compiled = jitted(prepared).lower(*data).compile()
    return pickle.dumps(_jax_executables().serialize(compiled))


def _load_executable(job: dict[str, Any], path: Path) -> tuple[Any, dict[str, Any]]:
    payload, in_tree, out_tree = pickle.loads(path.read_bytes())
    return _jax_executables().deserialize_and_load(
        payload, in_tree, out_tree, execution_devices=jax.devices()[:1]
    ), {}


PROGRAMS = {
    "jit": ProgramForm(None, _from_source),
    "export": ProgramForm(_make_export, _load_export),
    "executable": ProgramForm(_make_executable, _load_executable, ahead=True),
}


def jitted(prepared: Prepared) -> Any:
    """Return the jitted function with its static arguments bound, under its own name."""
    function = transforms.transformed(prepared.workload, prepared.case)
    fixed = functools.wraps(function)(functools.partial(function, **prepared.static))
    return jax.jit(fixed, donate_argnums=prepared.donated_positions)


def build(
    function: Any, arguments: tuple[Any, ...], static: dict[str, Any]
) -> tuple[Any, dict[str, float]]:
    """Trace, lower and compile a jitted function; return the program, and seconds by step."""
    making = Build(function, arguments, static)
    steps_s = {}
    for name, step in making.steps():
        begin = time.monotonic()
        step()
        steps_s[name] = time.monotonic() - begin
    return making.compiled, steps_s


def inputs(job: dict[str, Any], path: Path) -> Any:
    """Return the arguments that the build machine stored, on the device."""
    stored = path.read_bytes()
    try:
        tree, leaves = pickle.loads(stored)
    except (ImportError, AttributeError):  # a container of the user's own
        cases.read(job)
        tree, leaves = pickle.loads(stored)
    arrays = [
        jax.random.wrap_key_data(leaf[0], impl=leaf[1]) if isinstance(leaf, tuple) else leaf
        for leaf in leaves
    ]
    return jax.device_put(jax.tree_util.tree_map(lambda position: arrays[position], tree))


def plain(leaf: Any) -> Any:
    """Return a leaf as NumPy array, a PRNG key as its data and the name of its implementation."""
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf)), str(jax.random.key_impl(leaf))
    return np.asarray(leaf)


def first_line(error: Exception) -> str:
    """Return an error's kind and the first line of what it says, if it says anything."""
    said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
