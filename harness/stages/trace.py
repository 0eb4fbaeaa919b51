"""`trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.stages.stage import Stage

if TYPE_CHECKING:
    from harness.stages.passes import Pass

NO_TRACE = "{} has no trace step of its own; its lower stage traces as well"

GIVEN_BACK = "JAX gave back the jaxpr of the last pass: nothing was traced"


def take(run: Pass) -> None:
    """Trace; a jaxpr that the last pass got as well was not traced (no event tells)."""
    if not run.build.has_trace:
        own = run.prepared.own
        what = "jax.pmap" if own is None else f"the function, a {type(own.function).__name__},"
        run.missing["trace"] = NO_TRACE.format(what)
        return
    run.timed("trace", run.build.trace, STAGE.events)
    if run.prepared.was_given(run.build.traced.jaxpr):
        run.refuse("trace", GIVEN_BACK)


STAGE = Stage(
    name="trace",
    title="The function becomes a jaxpr.",
    step="build",
    calibrated_by="trace",
    colour="#56B4E9",
    take=take,
    events={"trace": 1},
    stacked=True,
    asv={"off": "trace"},
    power={"default": 0.2},
    counted="trace_calls",
    clock="cpu",
)
