"""One process of `harness cache ship --symbolic`: one export, called with every size."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import msgspec
from jax import export

from harness.declare import location
from harness.declare.workload import enumerate_cases
from harness.ship.build_child import NO_FLATBUFFERS, in_a_line, jitted
from harness.ship.results import difference
from harness.ship.route_child import plain
from harness.stages.build import Build
from harness.stages.passes import gc_off
from harness.stages.prepared import Prepared, prepare
from harness.watch import evidence

SYMBOL = "b"

STEPS = ("trace", "lower", "compile")

_COLD = {"trace": 1, "lower": 1, "compile": 1}


class NotSymbolic(Exception):
    """The sizes cannot be written as one symbol; the text says where."""


def main() -> None:
    """Export once with a symbol in place of the axis, then build every size from it and without."""
    job = json.loads(Path(sys.argv[1]).read_bytes())
    workload = location.load(msgspec.convert(job["source"], location.Source))
    known = list(enumerate_cases(workload))
    prepared = [prepare(workload, known[position]) for position in job["cases"]]
    Path(sys.argv[2]).write_text(json.dumps(_measure(prepared, job["sizes"], job["seed"])))


def _measure(prepared: list[Prepared], sizes: list[int], seed: int) -> dict[str, Any]:
    try:
        shapes = symbolic_shapes([p.abstract for p in prepared], sizes)
        specs = export.symbolic_args_specs(prepared[0].abstract, shapes)
        begin = time.monotonic()
        exported = export.export(jitted(prepared[0]))(*specs)
        export_s = time.monotonic() - begin
    except Exception as error:  # a function may do with a symbol whatever cannot be done with one
        return {"reason": in_a_line(error)}
    answer: dict[str, Any] = {
        "export_s": export_s,
        "shapes": list(jax.tree_util.tree_leaves(shapes)),
    }
    try:
        answer["bytes"] = len(exported.serialize())
    except ImportError:
        answer["bytes_reason"] = NO_FLATBUFFERS
    proof = evidence.Evidence()
    data = [p.data(None) for p in prepared]

    def direct(position: int) -> Any:
        return jitted(prepared[position])

    def shipped(position: int) -> Any:
        return jax.jit(exported.call)

    _build(direct, 0, data, proof)  # what a process pays once is no size's own cost
    _build(shipped, 0, data, proof)
    order = list(range(len(sizes)))
    random.Random(seed).shuffle(order)
    rows: list[dict[str, Any]] = [{} for _ in sizes]
    for position in order:
        one = _build(direct, position, data, proof)
        other = _build(shipped, position, data, proof)
        problem = one.pop("refused") or other.pop("refused")
        rows[position] = {
            "size": sizes[position],
            "direct": one["steps_s"],
            "shipped": other["steps_s"],
            "refused": problem or difference(one["result"], other["result"]) or "",
        }
    return {**answer, "rows": rows}


def _build(
    program: Callable[[int], Any], position: int, data: list[Any], proof: evidence.Evidence
) -> dict[str, Any]:
    jax.clear_caches()
    function = program(position)
    arguments = jax.block_until_ready(jax.tree_util.tree_map(lambda x: x.copy(), data[position]))
    proof.take()
    compiled, steps_s = _timed(function, arguments)
    counts = proof.take()
    result = jax.block_until_ready(compiled(*arguments))
    return {
        "steps_s": steps_s,
        "result": [plain(leaf) for leaf in jax.tree_util.tree_leaves(result)],
        "refused": evidence.contradiction({k: counts.get(k, 0) for k in _COLD}, _COLD),
    }


def _timed(function: Any, arguments: Sequence[Any]) -> tuple[Any, dict[str, float]]:
    """Trace, lower and compile a jitted function; return the program, and seconds by step."""
    build = Build(function, tuple(arguments))
    seconds = {}
    with gc_off():
        for name, step in build.steps():
            begin = time.perf_counter()
            step()
            seconds[name] = time.perf_counter() - begin
    return build.compiled, seconds


def symbolic_shapes(arguments: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return the shapes of the first arguments as texts, the sizes' symbol in its places.

    Args:
        arguments: the abstract arguments of each size, in the order of `sizes`.
        sizes: at least two different ones, so that a size is told from a constant.

    Raises:
        NotSymbolic: the structure or a shape depends on the size in another way than as its
            multiple.
    """
    leaves = [jax.tree_util.tree_flatten(one) for one in arguments]
    if len({str(structure) for _, structure in leaves}) > 1:
        raise NotSymbolic("the sizes have different pytrees of inputs")
    texts = []
    for number, same in enumerate(zip(*(flat for flat, _ in leaves), strict=True)):
        if len({leaf.ndim for leaf in same}) > 1 or len({leaf.dtype for leaf in same}) > 1:
            raise NotSymbolic(f"input {number} differs in more than its sizes")
        dims = [
            _dimension([leaf.shape[axis] for leaf in same], sizes, number)
            for axis in range(same[0].ndim)
        ]
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
    main()
