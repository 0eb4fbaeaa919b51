"""One process of `harness cache ship --symbolic`: one export, called with every size."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import export

from harness.engine import channel
from harness.program.collector import gc_off
from harness.ship import cases, programs
from harness.ship.routes import COLD, difference
from harness.stages.prepared import prepare
from harness.watch import evidence
from harness.watch.first_step import reason_of

SYMBOL = "b"


class NotSymbolic(Exception):
    """The sizes cannot be written as one symbol; the text says where."""


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Export once with a symbol in place of the axis, then build every size from it and without."""
    workload, chosen = cases.read(job)
    sizes: list[int] = job["sizes"]
    prepared = [prepare(workload, case) for case in chosen]
    functions = [
        programs.jitted(workload, case, programs.call_of(one))
        for case, one in zip(chosen, prepared, strict=True)
    ]
    try:
        shapes = symbolic_shapes([one.abstract for one in prepared], sizes)
        specs = export.symbolic_args_specs(prepared[0].abstract, shapes)
        begin = time.monotonic()
        exported = export.export(functions[0])(*specs)
        export_s = time.monotonic() - begin
    except Exception as error:  # a function may do with a symbol whatever cannot be done with one
        return {"reason": reason_of(error)}
    answer: dict[str, Any] = {
        "export_s": export_s,
        "shapes": list(jax.tree_util.tree_leaves(shapes)),
    }
    try:
        answer["bytes"] = len(exported.serialize())
    except ImportError as error:
        answer["bytes_reason"] = reason_of(error)
    proof = evidence.Evidence()
    data = [one.data(None) for one in prepared]

    def both(position: int) -> dict[str, Any]:
        one = _build(functions[position], data[position], proof)
        other = _build(jax.jit(exported.call), data[position], proof)
        refused = one["refused"] or other["refused"] or difference(one["result"], other["result"])
        return {
            "size": sizes[position],
            "direct": one["steps_s"],
            "shipped": other["steps_s"],
            "refused": refused or "",
        }

    both(0)  # what a process pays once is no size's own cost
    order = list(range(len(sizes)))
    random.Random(job["seed"]).shuffle(order)
    rows = {position: both(position) for position in order}
    return {**answer, "rows": [rows[position] for position in range(len(sizes))]}


def _build(function: Any, data: Any, proof: evidence.Evidence) -> dict[str, Any]:
    jax.clear_caches()
    arguments = jax.block_until_ready(jax.tree_util.tree_map(copy.copy, data))
    proof.take()
    with gc_off():
        compiled, steps_s = programs.build(function, arguments)
    counts = proof.take()
    result = jax.block_until_ready(compiled(*arguments))
    return {
        "steps_s": steps_s,
        "result": [programs.plain(leaf) for leaf in jax.tree_util.tree_leaves(result)],
        "refused": evidence.contradiction({kind: counts.get(kind, 0) for kind in COLD}, COLD),
    }


def symbolic_shapes(arguments: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return the shapes of the first arguments as texts, the sizes' symbol in its places.

    There are at least two different `sizes`, so that a size is told from a constant.
    """
    leaves = [jax.tree_util.tree_flatten(one) for one in arguments]
    if len({str(structure) for _, structure in leaves}) > 1:
        raise NotSymbolic("the sizes have different pytrees of inputs")
    texts = []
    for number, same in enumerate(zip(*(flat for flat, _ in leaves), strict=True)):
        kinds = {(np.ndim(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in same}
        if len(kinds) > 1:
            raise NotSymbolic(f"input {number} differs in more than its sizes")
        lengths = zip(*(np.shape(leaf) for leaf in same), strict=True)
        dims = [_dimension(list(one), sizes, number) for one in lengths]
        texts.append(f"({', '.join(dims)}{',' if len(dims) == 1 else ''})")
    return jax.tree_util.tree_unflatten(leaves[0][1], texts)


def _dimension(lengths: list[int], sizes: Sequence[int], number: int) -> str:
    if len(set(lengths)) == 1:
        return str(lengths[0])
    factors = {divmod(length, size) for length, size in zip(lengths, sizes, strict=True)}
    if len(factors) == 1 and next(iter(factors))[1] == 0:
        factor = next(iter(factors))[0]
        return SYMBOL if factor == 1 else f"{factor}*{SYMBOL}"
    raise NotSymbolic(
        f"input {number} has the lengths {lengths} for the sizes {list(sizes)}: no multiple of them"
    )


if __name__ == "__main__":
    channel.serve(measure)
