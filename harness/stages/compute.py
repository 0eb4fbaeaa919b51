"""`compute`: a program's own work, on one thread, in the process that also runs it as users do.

A second client of the CPU is made there while `NPROC` is 1, which XLA reads when it counts the
threads of a client. It computes a call where it is made, and the program of the first client is
loaded into it: nothing is compiled again.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from harness.jaxhooks import jax_names
from harness.stages.blocks import Calls
from harness.stages.build import Build
from harness.stages.prepared import Prepared
from harness.stages.stage import Unable

ROUNDS = 3
"""Rounds over the cases of a process, at the least: what slows the machine for a while should not
meet all calls of a case."""

ROUND_S = 0.010
"""How long a round runs a program, in seconds; a longer call runs once."""

UNDISTURBED = 0.9
"""CPU time over wall time of a round below which somebody else had the processor."""


class NotComputed(Exception):
    """A program is not computed on one thread; it has the code as `why`."""

    def __init__(self, why: Unable) -> None:
        super().__init__(why)
        self.why = why


@functools.cache
def client() -> Any:
    """Return this process's second client of the CPU, with one thread; None where it has none."""
    before = os.environ.get("NPROC")
    os.environ["NPROC"] = "1"
    try:
        return jax_names.inline_cpu_client()
    except Exception:  # whatever it is in a release of JAX that makes clients another way
        return None
    finally:
        del os.environ["NPROC"]
        if before is not None:
            os.environ["NPROC"] = before


def inline_calls(build: Build, prepared: Prepared) -> Calls:
    """Return the calls of a program that was built, computed on one thread where they are made.

    Raises:
        NotComputed: it cannot be.
    """
    program = build.compiled.runtime_executable()
    devices = program.local_devices()
    if devices[0].platform != "cpu":
        raise NotComputed(Unable.NOT_A_CPU)
    if len(devices) > 1:
        raise NotComputed(Unable.SEVERAL_DEVICES)
    if jax_names.has_effects(build.compiled):
        raise NotComputed(Unable.CALLS_BACK)
    if (own := client()) is None:
        raise NotComputed(Unable.NO_CLIENT)
    host = _host_arrays(build, prepared)
    (device,) = own.local_devices()

    def fresh(one: Any) -> Any:
        return jax.device_put(one, device, may_alias=False)

    build.serialise()
    try:
        loaded = jax_names.load_into(own, build.serialised or b"")
        loaded.execute_sharded(list(map(fresh, host)))  # what is missing shows at a call
    except Exception as error:  # of XLA: it may have no bytes of the program, or not all
        raise NotComputed(Unable.NOT_LOADED) from error
    infos = jax.tree_util.tree_leaves(build.compiled.args_info)
    of_parameters = jax_names.parameters(build.compiled, [one.donated for one in infos])
    donated = [one is True for one in of_parameters]

    def supply() -> Iterator[tuple[Any, ...]]:
        held = [fresh(one) for one in host]
        if not any(donated):
            while True:
                yield (held,)
        while True:
            each = zip(held, host, donated, strict=True)
            yield ([fresh(other) if given else one for one, other, given in each],)

    given = sum(one.nbytes for one, is_given in zip(host, donated, strict=True) if is_given)
    return Calls(
        loaded.execute_sharded,
        supply(),
        ready=lambda result: result,  # it is there when the call returns
        donated_bytes=given if any(donated) else None,
    )


def _host_arrays(build: Build, prepared: Prepared) -> list[Any]:
    """Return what the program takes, as NumPy arrays."""
    expected = jax.tree_util.tree_leaves(build.compiled.in_avals)
    leaves = jax.tree_util.tree_leaves(prepared.data(build.compiled))
    if len(leaves) != len(expected):  # static ones are among them
        leaves = [one for one in leaves if hasattr(one, "shape")]
    shapes, wanted = ([getattr(one, "shape", ()) for one in of] for of in (leaves, expected))
    if shapes != wanted:  # a library took its arguments apart in another order
        raise NotComputed(Unable.OTHER_ARGUMENTS)

    def plain(leaf: Any, aval: Any) -> Any:
        if jax.numpy.issubdtype(aval.dtype, jax.dtypes.extended):
            return np.asarray(jax.random.key_data(leaf))
        return np.asarray(leaf, aval.dtype)

    arrays = list(map(plain, leaves, expected))
    return [np.asarray(one) for one in jax_names.parameters(build.compiled, arrays)]
