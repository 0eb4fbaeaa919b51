"""What one program takes, by a script of its own that knows nothing of the harness.

    python -m tools.corpus.independent npbench jacobi_2d S --passes 2

One process is one sample. It makes the arguments, calls the function for the first time, then
builds it anew in every pass and calls it in a bare loop. Times are seconds, in JSON.
"""

import argparse
import gc
import importlib
import json
import statistics
import time
from typing import Any

import jax

from tools.corpus.programs.program import Program

LOOP_S = 0.02
"""How long a pass calls the program for."""


def arrays_copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with fresh buffers, for a function that takes its arguments' away."""
    copied = jax.tree.map(lambda one: one.copy() if hasattr(one, "copy") else one, arguments)
    return tuple(jax.block_until_ready(copied))


def first_call(function: Any, arguments: tuple[Any, ...]) -> float:
    """Return what the first call took, until its result is there; the collector runs as ever."""
    begin = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    return time.perf_counter() - begin


def build(function: Any, arguments: tuple[Any, ...]) -> tuple[dict[str, float], Any]:
    """Trace, lower and compile with nothing in memory; return the seconds and the program."""
    jax.clear_caches()
    gc.collect()
    spent, made = {}, function
    for stage in ("trace", "lower", "compile"):
        given = arguments if made is function else ()
        if not hasattr(made, stage):  # a library's jitted object lowers at once
            continue
        begin = time.perf_counter()
        made = getattr(made, stage)(*given)
        spent[stage] = time.perf_counter() - begin
    return spent, made


def calls(function: Any, arguments: tuple[Any, ...], donates: bool) -> list[float]:
    """Return what each call of a bare loop took, until its result was there; the first is left."""
    clock, ready = time.perf_counter, jax.block_until_ready
    ready(function(*(arrays_copied(arguments) if donates else arguments)))
    spent: list[float] = []
    while not spent or sum(spent) < LOOP_S:
        given = arrays_copied(arguments) if donates else arguments
        begin = clock()
        ready(function(*given))
        spent.append(clock() - begin)
    return spent


def bytes_of(compiled: Any) -> int:
    """Return what a program needs of memory: its arguments, its results, and in between."""
    compiled = getattr(compiled, "compiled", compiled)  # a library's may hold JAX's
    needs = compiled.memory_analysis()
    return int(needs.argument_size_in_bytes + needs.output_size_in_bytes + needs.temp_size_in_bytes)


def measure(program: Program, size: str, passes: int) -> dict[str, Any]:
    """Return the median of each stage over the passes, and the least and the median call."""
    function = program.function
    if not hasattr(function, "lower"):
        function = jax.jit(function)
    arguments = jax.block_until_ready(program.inputs(size))
    given = arrays_copied(arguments) if program.donates else arguments
    found: dict[str, Any] = {"first_call": first_call(function, given)}
    builds: list[dict[str, float]] = []
    spent: list[float] = []
    gc.disable()
    for _ in range(passes):
        stages, compiled = build(function, arguments)
        builds.append(stages)
        spent += calls(function, arguments, program.donates)
    for stage in builds[0]:
        found[stage] = statistics.median(one[stage] for one in builds)
    found["execute"] = min(spent)
    found["execute median"] = statistics.median(spent)
    return {**found, "bytes": bytes_of(compiled)}


def main() -> None:
    """Measure what the command line names, in this process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", help="a module of tools.corpus.programs")
    parser.add_argument("program")
    parser.add_argument("size")
    parser.add_argument("--passes", type=int, default=2)
    given = parser.parse_args()
    module = f"tools.corpus.programs.{given.source}"
    # What a process pays once for 64-bit types is paid before JAX has computed anything.
    jax.config.update("jax_enable_x64", given.source in ("npbench", "pyhpc"))
    program = importlib.import_module(module).PROGRAMS[given.program]
    print(json.dumps(measure(program, given.size, given.passes)))


if __name__ == "__main__":
    main()
