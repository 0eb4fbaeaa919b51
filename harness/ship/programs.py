"""What can be shipped: how a build machine makes it, and how a fresh process gets it back.

As a program of its own it is the build machine.
"""

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
from harness.declare.inputs import is_array
from harness.declare.jitted import by_keyword, find
from harness.declare.workload import Case, Workload, static_arguments
from harness.engine import channel
from harness.ship import cases
from harness.stages.build import Build
from harness.stages.prepared import Prepared, prepare
from harness.watch.first_step import SERIALIZE, reason_of
from harness.watch.jax_names import options_of, public


@dataclass(frozen=True)
class ProgramForm:
    """One form of a program.

    Attributes:
        make: Returns what is shipped, from the jitted function, the arguments that it is traced
            with and its inputs; nothing of the source, which is there.
        load: Returns what is called, from the job and what was shipped. JAX's own modules that
            this takes are imported then: a user pays for them too.
        ahead: Whether it is compiled already, so that nothing is traced, lowered or compiled.
    """

    make: Callable[[Any, tuple[Any, ...], tuple[Any, ...]], bytes]
    load: Callable[[dict[str, Any], Path], Any]
    ahead: bool = False


def _from_source(job: dict[str, Any], path: Path) -> Any:
    workload, (case,) = cases.read(job)
    return jitted(workload, case, job["call"])


def _make_export(function: Any, abstract: tuple[Any, ...], data: tuple[Any, ...]) -> bytes:
    return bytes(public("jax.export").export(function)(*abstract).serialize())


def _load_export(job: dict[str, Any], path: Path) -> Any:
    call = public("jax.export").deserialize(bytearray(path.read_bytes())).call
    return jax.jit(call, donate_argnums=job["call"]["donated"])


def _make_executable(function: Any, abstract: tuple[Any, ...], data: tuple[Any, ...]) -> bytes:
    return pickle.dumps(public(SERIALIZE).serialize(function.lower(*data).compile()))


def _load_executable(job: dict[str, Any], path: Path) -> Any:
    payload, in_tree, out_tree = pickle.loads(path.read_bytes())
    return public(SERIALIZE).deserialize_and_load(
        payload, in_tree, out_tree, execution_devices=jax.devices()[:1]
    )


PROGRAMS = {
    "jit": ProgramForm(lambda function, abstract, data: b"", _from_source),
    "export": ProgramForm(_make_export, _load_export),
    "executable": ProgramForm(_make_executable, _load_executable, ahead=True),
}


def make_all(job: dict[str, Any]) -> dict[str, Any]:
    """Store the inputs and every program; return how it is called, and bytes by program.

    In place of the bytes stands why one could not be made.
    """
    workload, (case,) = cases.read(job)
    prepared = prepare(workload, case)
    data = prepared.data(None)
    leaves, structure = jax.tree_util.tree_flatten(data)
    for leaf in leaves:
        if not is_array(leaf) and not isinstance(leaf, int | float | complex):
            return {"reason": f"one of them is a {type(leaf).__name__}"}
    positions = jax.tree_util.tree_unflatten(structure, range(len(leaves)))
    folder = Path(job["folder"])
    (folder / "data").write_bytes(pickle.dumps((positions, [plain(leaf) for leaf in leaves])))
    call = call_of(prepared)
    function = jitted(workload, case, call)
    made = {
        name: _made(folder / name, program, function, prepared.abstract, data)
        for name, program in PROGRAMS.items()
    }
    return {"call": call, "made": made}


def _made(path: Path, program: ProgramForm, *given: Any) -> dict[str, Any]:
    try:
        return {"bytes": path.write_bytes(program.make(*given))}
    except Exception as error:  # JAX names what it cannot serialise by exceptions of many kinds
        return {"reason": reason_of(error)}


def call_of(prepared: Prepared) -> dict[str, Any]:
    """Return how a case is jitted and called, for processes that do not make its inputs."""
    donated: Any = prepared.donated_positions
    options: dict[str, Any] = {}
    if prepared.own is not None:
        made = Build.of(prepared)
        for step, work in made.steps():
            if step != "compile":
                work()
        structure = jax.tree_util.tree_structure(prepared.abstract)
        given = jax.tree_util.tree_unflatten(structure, prepared.donated(made.lowered))
        donated = [i for i, one in enumerate(given) if any(jax.tree_util.tree_leaves(one))]
        if made.traced is not None:
            options = dict(options_of(made.traced).get("compiler_options_kvs", ()))
    shipped = prepared.own is not None and prepared.own.takes_shapes
    return {"names": prepared.names, "donated": donated, "options": options, "own": shipped}


def jitted(workload: type[Workload], case: Case, call: dict[str, Any]) -> Any:
    """Return the function of a case, under its own name, jitted anew as its user has it.

    It takes all arguments by position, static ones are bound; `call` is of :func:`call_of`.
    """
    names = tuple(call["names"])
    function = transforms.transformed(workload, case, names)
    name, static = function.__name__, static_arguments(workload, case)
    own = find(workload.function) if call["own"] else None
    if own is not None:  # a jitted function inside of another one loses its options
        inner = functools.partial(own.function.__wrapped__, *own.before, **own.keywords)
        function = by_keyword(inner, names)

    # Not `functools.wraps`: JAX would look for the arguments in the signature of the other.
    def fixed(*arguments: Any) -> Any:
        return function(*arguments, **static)

    fixed.__name__ = fixed.__qualname__ = name
    options = call["options"] or None
    return jax.jit(fixed, donate_argnums=call["donated"], compiler_options=options)


def build(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, dict[str, float]]:
    """Trace, lower and compile a jitted function; return the program, and seconds by step."""
    making = Build(function, arguments)
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
    arrays = [jax.device_put(leaf) if is_array(leaf) else leaf for leaf in arrays]
    return jax.tree_util.tree_map(lambda position: arrays[position], tree)


def plain(leaf: Any) -> Any:
    """Return a leaf as NumPy array, a PRNG key as its data and the name of its implementation.

    What is no array, such as a number of Python's, stays.
    """
    if not is_array(leaf):
        return leaf
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf)), str(jax.random.key_impl(leaf))
    return np.asarray(leaf)


if __name__ == "__main__":
    channel.serve(make_all)
