"""One pass over a case with the persistent cache: its stages, and a first call, both proven."""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from harness.stages.cold_pass import Pass, gc_off
from harness.stages.preparing import Prepared, supply, wrap
from harness.stages.scenarios import cache_state
from harness.stages.scenarios.registry import SCENARIOS
from harness.watch import evidence

_clock = time.perf_counter_ns
_TRACED = {"trace": 1, "lower": 1}


def cached_pass(
    prepared: Prepared,
    proof: evidence.Evidence,
    scenario: str,
    folder: Path,
    ready_ns: int,
    number: int,
    announce: Callable[[str], None] = lambda stage: None,
) -> Pass:
    """Take the stages of a scenario once: ahead of time, then once more as a user's first call.

    In `cold`, the first pass fills `folder`; later passes and first calls have empty directories of
    their own. `ready_ns` is what the process took until it could begin; `start` is that plus the
    first call.
    """
    taken = Pass()
    with tempfile.TemporaryDirectory() as scratch:
        compiled_in, called_in = folder, folder
        if scenario == "cold":
            called_in = Path(scratch, "called")
            called_in.mkdir()
            if number:
                compiled_in = Path(scratch, "compiled")
                compiled_in.mkdir()
        ahead_of_time(taken, prepared, proof, scenario, compiled_in, announce)
        _first_call(taken, prepared, proof, scenario, called_in, ready_ns, announce)
        if scenario != "warm":
            cache_state.use(folder)  # not a directory that is gone in a moment
    return taken


def ahead_of_time(
    taken: Pass,
    prepared: Prepared,
    proof: evidence.Evidence,
    scenario: str,
    folder: Path,
    announce: Callable[[str], None] = lambda stage: None,
) -> None:
    """Trace, lower and compile (or load) once, with `folder` as the persistent cache."""
    cache_state.use(folder)
    jax.clear_caches()
    jitted = wrap(prepared)
    keywords = {} if prepared.is_pmap else prepared.static

    def timed(step: Callable[[], Any]) -> tuple[Any, int]:
        proof.take()
        with gc_off():
            begin = _clock()
            result = step()
            end = _clock()
        taken.timed_ns += end - begin
        return result, end - begin

    if prepared.is_pmap:
        announce("lower")
        lowered, spent = timed(lambda: jitted.lower(*prepared.abstract))
    else:
        announce("trace")
        traced, spent = timed(lambda: jitted.trace(*prepared.abstract, **keywords))
        taken.judge("trace", [spent], 1, proof.take(), prepared.expected["trace"])
        taken.traced = traced
        announce("lower")
        lowered, spent = timed(traced.lower)
    taken.judge("lower", [spent], 1, proof.take(), prepared.expected["lower"])

    taken.lowered = lowered

    announce("compile")
    before = cache_state.entries(folder)
    taken.compiled, spent = timed(lowered.compile)
    after = cache_state.entries(folder)
    seen = _with_entries(proof.take(), before, after)
    possible = SCENARIOS[scenario].outcomes
    for stage, expected in possible:
        if evidence.contradiction(seen, expected) is None:
            taken.judge(stage, [spent], 1, seen, expected)
            break
    else:
        stage, expected = possible[0]
        taken.judge(stage, [spent], 1, seen, expected)
    new = [after[name] for name in after.keys() - before.keys()]
    taken.entry_bytes = sum(new)


def _first_call(
    taken: Pass,
    prepared: Prepared,
    proof: evidence.Evidence,
    scenario: str,
    folder: Path,
    ready_ns: int,
    announce: Callable[[str], None],
) -> None:
    announce("first_call")
    # Fresh donated buffers are copies, which JAX compiles: before the directory is looked at.
    arguments = next(supply(prepared, taken.compiled))
    cache_state.use(folder)
    jax.clear_caches()
    jitted = wrap(prepared)
    call = jitted if prepared.is_pmap else functools.partial(jitted, **prepared.static)
    before = cache_state.entries(folder)
    proof.take()
    with gc_off():
        begin = _clock()
        jax.block_until_ready(call(*arguments))
        spent = _clock() - begin
    taken.timed_ns += spent
    seen = _with_entries(proof.take(), before, cache_state.entries(folder))
    proofs = [{**_TRACED, **proof} for _, proof in SCENARIOS[scenario].outcomes]
    matching = [p for p in proofs if evidence.contradiction(seen, p) is None]
    expected = matching[0] if matching else proofs[0]
    taken.judge("first_call", [spent], 1, seen, expected)
    taken.judge("start", [ready_ns + spent], 1, seen, expected)


def _with_entries(
    seen: evidence.Counts, before: dict[str, int], after: dict[str, int]
) -> evidence.Counts:
    """Add to the events what the directory shows: entries that are new, changed or gone."""
    new = len(after.keys() - before.keys())
    other = sum(after.get(name) != size for name, size in before.items())
    extra = {"entry": new, "changed entry": other}
    return {**seen, **{kind: count for kind, count in extra.items() if count}}
