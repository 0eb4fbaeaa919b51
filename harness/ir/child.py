"""The process that builds the program of one case, started by :mod:`harness.ir.build`.

The job comes on standard input and messages go to the channel of :mod:`harness.measure.channel`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import msgspec

from harness.ir.build import BuildJob, BuiltTexts, Failed, Message, Step
from harness.ir.trials import STOPPED, trial_of, try_remedies
from harness.measure import channel
from harness.program import text
from harness.program.compiler.callers import CallBranch, callers
from harness.program.compiler.causes import causes
from harness.program.compiler.inside import inside as inside_of
from harness.program.compiler.recording import Untraceable, recorded
from harness.program.compiler.structure import called_kernels, structure
from harness.program.compiler.tree import CompileEvent
from harness.program.facts import facts_of
from harness.program.kernels import written
from harness.records.failure import describe
from harness.records.schema import plain_axes
from harness.stages.build import Build
from harness.stages.prepared import Prepared, prepare
from harness.targets import topologies
from harness.workload import location, transforms
from harness.workload.workload import Workload, WorkloadError


def main() -> None:
    """Read a job, build, answer, and end."""
    wanted = msgspec.json.decode(channel.read_job(), type=BuildJob)
    channel.follow_parent()

    channel.send(msgspec.json.encode(_answer(wanted)))
    channel.end()


def _answer(wanted: BuildJob) -> Message:
    steps: list[str] = []

    def begin(step: str) -> None:
        steps.append(step)
        channel.send(msgspec.json.encode(Step(step)))

    job, topology = wanted.job, None
    try:
        topologies.check_process(job.target, job.platforms, job.environment)
        jax.devices()
        if job.description:
            topology = topologies.describe(job.target, job.description)
        topologies.check_device(job.target, job.description)
    except RuntimeError as error:
        return Failed(f"JAX found no {job.target} device: {error}", no_device=True)
    except topologies.Unusable as error:
        return Failed(str(error), no_device=True)
    try:
        return _build(wanted, topology, begin)
    except transforms.NotApplicable as error:
        return Failed(f"this case cannot be built here: {error}.")
    except WorkloadError as error:
        return Failed(str(error))
    except Untraceable as error:
        return Failed(f"{error}.")
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        return Failed(f"the step {steps[-1]!r} raised {describe(error)}")


def _build(wanted: BuildJob, topology: Any, begin: Callable[[str], None]) -> Message:
    begin("import")
    workload = _load(wanted)
    if workload.x64:  # who asks for a workload of another commit cannot know what it wants
        jax.config.update("jax_enable_x64", True)
    begin("inputs")
    case = replace(wanted.case, axes=plain_axes(wanted.case.axes), target=wanted.job.target)
    prepared = prepare(workload, case, topology)
    made = Build.of(prepared)
    shown = ""
    seen: list[CompileEvent] = []
    if wanted.with_inside:
        begin("first program")  # what the first compile of a process pays is no program's own
        one = topology.one if topology else None
        jax.jit(lambda x: x + 1).lower(
            jax.ShapeDtypeStruct((8,), "float32", sharding=one)
        ).compile()
    for step, work in made.steps():
        begin(step)
        if step == "compile" and wanted.with_inside:
            seen = recorded(work)
        else:
            work()
        if step == "trace" and wanted.stage == "jaxpr":
            shown = _jaxpr(made.traced, wanted)
        elif step == "lower" and wanted.stage == "stablehlo":
            shown = made.lowered.as_text(debug_info=wanted.located)
        elif step == "lower" and wanted.stage == "jaxpr" and made.traced is None:
            shown = _jaxpr(_traced(made), wanted)
        if shown and not wanted.with_facts:
            return BuiltTexts(shown)
    misplaced = topology.misplaced(made.compiled) if topology else ""
    if misplaced:
        return Failed(misplaced)
    begin("text")
    whole = made.compiled.as_text() or ""
    if wanted.stage == "hlo":
        if not whole:
            return Failed(
                f"the back end of {wanted.job.target} gives no text of what it compiled. Ask for "
                "--stage stablehlo."
            )
        shown = whole if wanted.located else text.normalise(whole)
    inside = inside_of(seen, whole) if seen else None
    facts = facts_of(made.traced, made.lowered, made.compiled) if wanted.with_facts else None
    constants = text.constants(made.lowered.as_text() or "") if wanted.with_facts else ""
    built = BuiltTexts(shown, text.fingerprint(made.compiled), facts, constants, inside, seen)
    named = [*called_kernels(made.traced.jaxpr)] if made.traced is not None else []
    built.written = [*written(whole, named)]
    if inside is not None:
        traced = _traced(made)
        built.causes = causes(structure(traced.jaxpr), inside, inside.wall_s, wanted.job.target)
        one = topology.one if topology else None
        spread = any(each != one for each in jax.tree_util.tree_leaves(prepared.shardings))
        able = []
        for cause in built.causes if wanted.with_tries else ():
            cause.trial = trial_of(cause, built.causes, spread)
            if cause.trial is not None and cause.trial.untried == STOPPED:
                able.append(cause)
        channel.send(msgspec.json.encode(built))  # what follows may not come to its end
        built.python = _python(prepared, begin)
        built.stages_s = {stage.name: stage.wall_s for stage in built.python}
        build_s = inside.wall_s + sum(built.stages_s.values())
        first_s = inside.wall_s + built.stages_s.get("lower", 0.0)
        for step in try_remedies(traced, able, one, first_s):
            channel.send(msgspec.json.encode(built))
            begin(step)
        built.causes.sort(key=lambda one: one.worth_s(build_s), reverse=True)
    return built


def _python(prepared: Prepared, begin: Callable[[str], None]) -> list[CallBranch]:
    """Trace and lower from nothing twice more: timed, then counted."""
    taken: dict[str, float] = {}
    trees: list[CallBranch] = []
    for is_counted in (False, True):
        jax.clear_caches()
        made = Build.of(prepared)
        for name, step in made.steps():
            if name == "compile":
                continue
            begin(name)
            if is_counted:
                trees.append(callers(name, step, taken[name]))
            else:
                start = time.perf_counter()
                step()
                taken[name] = time.perf_counter() - start
        given = made.has_trace and prepared.was_given(made.traced.jaxpr)
        made.forget()
    return [] if given else trees


def _traced(made: Build) -> Any:
    """Return what JAX traced; of an object without that step, a traced function that calls it."""
    if made.traced is not None:
        return made.traced
    leaves, structure = jax.tree_util.tree_flatten(made.arguments)
    kinds = (jax.Array, jax.ShapeDtypeStruct)
    arrays = {at: one for at, one in enumerate(leaves) if isinstance(one, kinds)}

    def call(given: dict[int, Any]) -> list[Any]:
        filled = [given.get(at, one) for at, one in enumerate(leaves)]
        result = made.jitted(*jax.tree_util.tree_unflatten(structure, filled), **made.static)
        return [one for one in jax.tree_util.tree_leaves(result) if isinstance(one, jax.Array)]

    return jax.jit(call).trace(arrays)


def _jaxpr(traced: Any, wanted: BuildJob) -> str:
    return str(traced.jaxpr.pretty_print(source_info=True) if wanted.located else traced.jaxpr)


def _load(wanted: BuildJob) -> type[Workload]:
    source = wanted.job.source
    try:
        return location.load(source)
    except (AttributeError, FileNotFoundError) as error:
        raise WorkloadError(f"there is no {source.qualname} in {source.module}: {error}") from None


if __name__ == "__main__":
    main()
