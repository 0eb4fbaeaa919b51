from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import sparse

from harness.program.collector import gc_off
from harness.stages import blocks, passes, registry
from harness.stages.passes import take_pass
from harness.stages.prepared import prepare
from harness.stages.registry import CASE_STAGES
from harness.stages.scenarios import cache_state
from harness.stages.staged_case import StagedCase
from harness.workload import transforms
from harness.workload.workload import Case, Workload, WorkloadError, enumerate_cases, spec
from tests.sweeps import workload

SHORT_S = 0.0005
"""Execute for this long: what is tested here does not depend on it."""


def made(function, inputs=lambda self: spec((4,)), **members):
    """A workload of one function, whose `inputs` are those of a method."""
    about = {"targets": ("cpu",), "inputs": inputs, "function": staticmethod(function)}
    return type("Made", (Workload,), about | members)


class Plain(Workload):
    targets = ("cpu",)
    transforms = ("forward", "gradient", "vmap")

    def inputs(self):
        return {"w": spec((8, 4)), "b": spec((4,))}, spec((3, 8))

    @staticmethod
    def function(parameters, x):
        return jax.nn.relu(x @ parameters["w"] + parameters["b"])


class Static(Plain):
    sweep = {"size": [8], "steps": [2, 3]}
    static = ("steps",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x, *, steps):
        return lax.fori_loop(0, steps, lambda _, y: jnp.sin(y), x)


class Donated(Plain):
    donate = ("state",)

    def inputs(self):
        return {"a": spec((16,)), "n": spec((16,), "int32")}, spec((16,))

    @staticmethod
    def function(state, step):
        return {"a": state["a"] + step, "n": state["n"] + 1}


class DonatedAmongMany(Workload):
    targets = ("cpu",)
    donate = ("first",)

    def inputs(self):
        return spec((4,)), spec((4,)), spec((4,))

    @staticmethod
    def function(first, *others):
        return first + sum(others)


class DonatedKeys(Workload):
    targets = ("cpu",)
    donate = ("keys",)

    def inputs(self):
        return spec((4,), "key")

    @staticmethod
    def function(keys):
        return jax.vmap(lambda key: jax.random.split(key, 1)[0])(keys)


EVERY_KIND = [
    (workload, case)
    for workload in (Plain, Static, Donated, DonatedAmongMany, DonatedKeys)
    for case in enumerate_cases(workload)
]


def take(workload, proof, case=None, **options):
    """Make one short pass over one case."""
    prepared = prepare(workload, case or next(enumerate_cases(workload)))
    return take_pass(prepared, proof, effort_s=SHORT_S, **options)


def test_cpu_time_is_also_that_of_processes_which_a_step_starts_and_waits_for(proof):
    def starts(x):
        work = "import time\nwhile time.process_time() < 0.3: pass"
        subprocess.run([sys.executable, "-c", work], check=True)
        return x + 1

    taken = take(made(starts), proof)
    assert taken.cpu_ns["trace"][0] > 0.3e9  # as much as the process has used before it ended


def watch_calls(monkeypatch, watched):
    """Have `watched(call)` stand in for what is timed."""

    def stand_in(real):
        return lambda calls, plan: real(replace(calls, call=watched(calls.call)), plan)

    monkeypatch.setattr(registry, "time_returns", stand_in(registry.time_returns))
    monkeypatch.setattr(registry, "time_blocks", stand_in(registry.time_blocks))
    monkeypatch.setattr(registry, "time_flights", stand_in(registry.time_flights))


@pytest.mark.parametrize(
    ("workload", "case"),
    EVERY_KIND,
    ids=[f"{w.__name__}-{'-'.join(map(str, c.coordinates.values()))}" for w, c in EVERY_KIND],
)
def test_a_pass_has_every_stage_proven_twice_in_a_row(workload, case, proof):
    prepared = prepare(workload, case)
    for _ in range(2):
        taken = take_pass(prepared, proof, effort_s=SHORT_S)
        assert taken.refused == {}
        assert tuple({**taken.samples_ns, **taken.missing}) == CASE_STAGES
        assert all(ns > 0 for samples in taken.samples_ns.values() for ns in samples)


def test_the_time_of_a_step_and_its_cpu_time_are_of_clocks_of_their_own(proof, monkeypatch):
    ticks, cpu_ticks = itertools.count(0, 7), itertools.count(0, 5)
    monkeypatch.setattr(passes, "_clock", ticks.__next__)
    monkeypatch.setattr(passes, "cpu_time_ns", cpu_ticks.__next__)
    taken = take(Plain, proof)
    assert tuple(taken.cpu_ns) == (*CASE_STAGES[:3], "execute", "compute")
    for stage in CASE_STAGES[:3]:
        assert (taken.samples_ns[stage], taken.cpu_ns[stage]) == ([7], [5])


def test_stages_are_announced_in_order_and_before_they_begin(proof):
    said = []
    counted = []

    def announce(stage):
        said.append(stage)
        counted.append(proof.take())

    taken = take(Plain, proof, announce=announce)
    built, called = ["trace", "lower", "compile"], ["execute", "dispatch", "execute"]
    assert said == [*built, *called, "compute", "compute", "in_flight"]
    # What comes before a stage has been judged and taken: nothing of the next one is there yet.
    assert counted == [{}] * 9
    assert taken.refused == {}


def test_the_collector_is_off_inside_the_clock_and_on_again_afterwards(proof, monkeypatch):
    inside, outside = [], []

    def on_event(event, duration_secs, **_):
        if event.startswith("/jax/core/compile/"):
            inside.append(gc.isenabled())

    def watched(call):
        def calling(*arguments):
            inside.append(gc.isenabled())
            return call(*arguments)

        return calling

    watch_calls(monkeypatch, watched)
    assert gc.isenabled()
    jax.monitoring.register_event_duration_secs_listener(on_event)
    try:
        take(Plain, proof, announce=lambda stage: outside.append(gc.isenabled()))
    finally:
        jax.monitoring.unregister_event_duration_listener(on_event)
    assert len(inside) > 3 + blocks.DISPATCHES
    assert not any(inside)
    assert outside == [True] * 9
    assert gc.isenabled()


def test_the_collector_is_as_it_was_after_an_error(proof):
    def fails(x):
        assert not gc.isenabled()
        raise ValueError("no such luck")

    with pytest.raises(ValueError, match="no such luck"):
        take(made(fails), proof)
    assert gc.isenabled()
    gc.disable()
    try:
        with gc_off():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_the_function_calls_is_traced_anew_in_every_pass(proof):
    """No event tells: JAX fires none for a jitted function within another."""
    traced = []

    @jax.jit
    def inner(x):
        traced.append(1)
        return x + 1

    for number in (1, 2, 3):
        assert take(made(lambda x: inner(x) * 2), proof).refused == {}
        assert len(traced) == number


def test_a_trace_that_jax_had_in_memory_is_refused(proof, monkeypatch):
    """Both things that make a pass cold are broken on purpose; either of them would do."""
    prepared = prepare(Plain, Case())
    first = take_pass(prepared, proof, effort_s=SHORT_S)
    assert first.refused == {}
    monkeypatch.setattr(transforms, "fresh", lambda function: function)
    monkeypatch.setattr(jax, "clear_caches", lambda: None)
    kept = take_pass(prepared, proof, effort_s=SHORT_S)
    again = take_pass(prepared, proof, effort_s=SHORT_S)
    assert kept.refused == {}
    assert set(again.refused) >= {"trace", "lower"}
    assert again.refused["trace"] == (
        "JAX gave back the jaxpr of the last pass: nothing was traced"
    )
    assert again.refused["lower"] == "events show no event; the label needs 1 lower"
    assert not set(again.refused) & set(again.samples_ns)


compiled_inside = jax.jit(lambda x: x * 3)


def test_programs_that_are_built_while_tracing_are_told(proof):
    def eager(x):
        with jax.ensure_compile_time_eval():
            constant = compiled_inside(np.ones(4, np.float32))
        return x + constant

    taken = take(made(eager), proof)
    assert tuple({**taken.samples_ns, **taken.missing}) == CASE_STAGES
    assert set(taken.programs) == {"trace"}
    count, spent_ns = taken.programs["trace"]
    assert count == 1
    assert 0 < spent_ns < taken.samples_ns["trace"][0]


@pytest.mark.nightly
def test_a_trace_that_holds_another_is_measured(proof):
    """Of a product of sparse arrays, jax 0.10 tells a trace of its own."""
    arrays = sparse.BCOO.fromdense(jnp.eye(4)), jnp.ones(4)
    taken = take(made(lambda m, v: m @ v, lambda self: arrays), proof)
    assert not taken.refused
    assert "trace" in taken.samples_ns


def test_a_program_that_another_thread_builds_meanwhile_is_refused(proof):
    taken = take(workload("bad", "Beside"), proof)
    assert set(taken.refused) == {"trace"}
    text = taken.refused["trace"]
    assert text.startswith("events show 1 compile in another thread, 1 lower in another thread")
    assert text.endswith("; the label needs 1 trace")


@pytest.fixture
def persistent_cache(tmp_path):
    """Switch JAX's persistent cache on for one test, for programs however small."""
    with cache_state.switched_on():
        cache_state.use(tmp_path)
        yield tmp_path


def test_a_program_from_the_persistent_cache_is_not_called_cold(proof, persistent_cache):
    first = take(Plain, proof)
    assert "1 request, 1 write" in first.refused["compile"]
    assert "callback" not in first.refused["compile"]
    assert any(persistent_cache.iterdir())
    second = take(Plain, proof)
    assert "compile" not in second.samples_ns
    assert second.refused["compile"] == (
        "events show 1 compile, 1 hit, 1 request; the label needs 1 compile"
    )


def test_a_call_that_compiles_again_is_refused(proof):
    weak = jax.ShapeDtypeStruct((), "float32", weak_type=True)  # and the data are not
    taken = take(made(lambda x: x + 1, lambda self: weak), proof)
    assert tuple(taken.samples_ns) == (*CASE_STAGES[:3], "compute")
    assert set(taken.refused) == {"dispatch", "execute", "in_flight"}
    assert taken.refused["execute"].startswith(
        "the call did not run the program that was compiled: events show 1 compile"
    )


def test_a_callback_that_compiles_once_is_measured(proof):
    def doubled(x):
        result = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda y: jnp.square(y) + 3.5, result, x)

    taken = take(made(doubled, lambda self: jax.ShapeDtypeStruct((7, 3), "float32")), proof)
    assert not taken.refused
    assert {"dispatch", "execute"} <= set(taken.samples_ns)


def test_a_callback_that_compiles_in_each_call_is_refused(proof):
    def anew(x):
        result = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda y: jax.jit(lambda z: z + 3.5)(y), result, x)

    taken = take(made(anew, lambda self: jax.ShapeDtypeStruct((7, 3), "float32")), proof)
    assert taken.refused["execute"].startswith("the call did not run the program")


def test_an_array_of_a_weak_type_keeps_it(proof):
    arrays = jnp.array(1.0), jnp.ones(3, "bfloat16")
    taken = take(made(lambda x, y: x * y, lambda self: arrays), proof)
    assert not taken.refused
    assert [one.weak_type for one in taken.build.traced.jaxpr.in_avals] == [True, False]
    assert taken.build.lowered.out_info.dtype == "bfloat16"


def test_a_pass_in_which_modules_are_imported_is_taken_again(proof, tmp_path, monkeypatch):
    (tmp_path / "imported_while_tracing.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    traces = []

    def imports(x):
        traces.append(importlib.import_module("imported_while_tracing"))
        return x + 1

    case = StagedCase(made(imports), Case(), proof)
    case.visit(0, lambda stage: None)
    assert len(traces) == 2
    assert len(case.samples["trace"].samples_ns) == 1
    case.visit(1, lambda stage: None)
    assert len(traces) == 3


@pytest.mark.parametrize("transform", ["forward", "vmap"])
def test_donated_inputs_are_donated_and_fresh_for_every_call(transform, proof, monkeypatch):
    seen = []

    def watched(call):
        def calling(state, step):
            assert not any(leaf.is_deleted() for leaf in (*state.values(), step))
            result = call(state, step)
            seen.append((state, step))
            return result

        return calling

    watch_calls(monkeypatch, watched)
    prepared = prepare(Donated, Case(transform=transform))
    taken = take_pass(prepared, proof, effort_s=SHORT_S)
    assert taken.refused == {}
    assert "input_output_alias" in taken.build.compiled.as_text()
    assert len(seen) >= blocks.DISPATCHES + blocks.BLOCKS
    assert all(leaf.is_deleted() for state, _ in seen for leaf in state.values())
    assert not any(step.is_deleted() for _, step in seen)
    kept = jax.tree_util.tree_leaves(prepared.data(taken.build.compiled))
    assert not any(leaf.is_deleted() for leaf in kept)


@pytest.mark.parametrize("large", [False, True])
def test_the_data_of_a_case_are_made_once_and_not_kept_where_they_are_large(
    large, proof, monkeypatch
):
    if large:
        monkeypatch.setattr("harness.stages.prepared._KEEP_DATA_BYTES", 16)
    prepared = prepare(Plain, Case())
    compiled = take_pass(prepared, proof, effort_s=SHORT_S).build.compiled
    assert (prepared.data(compiled) is prepared.data(compiled)) != large


def test_inputs_that_are_none_are_refused_before_anything_is_traced():
    class Wrong(Plain):
        def inputs(self):
            return spec((4,)), "3"

    text = r"Wrong \(.*test_passes\.py:\d+\), transform='forward', .*: the input at \[1\] is '3' of"
    with pytest.raises(WorkloadError, match=text):
        prepare(Wrong, Case())


def test_pmap_still_has_no_trace_of_its_own():
    """If this fails, a JAX release gave it one: measure it, and drop `NO_PMAP_TRACE`."""
    assert hasattr(jax.jit(jnp.sin), "trace")
    assert not hasattr(jax.pmap(jnp.sin), "trace")


# --- several devices ------------------------------------------------------------------------------

SEVERAL = """
import json
import warnings

warnings.simplefilter("error")
import jax
from harness.workload import transforms
from harness.stages.passes import take_pass
from harness.stages.prepared import prepare
from harness.jaxhooks import evidence
from harness.workload.workload import Case, Workload, spec

class Both(Workload):
    sweep = {"factor": [3]}
    static = ("factor",)
    donate = ("x",)

    def inputs(self):
        return spec((4, 6)), spec((4,)), spec((4,), "key")

    @staticmethod
    def function(x, y, keys, *, factor):
        return factor * x + y.sum(), jax.random.key_data(keys)

class Scalar(Both):
    def inputs(self):
        return spec((8,)), spec(()), spec((2,), "key")

class Odd(Both):
    def inputs(self):
        return spec((4,)), spec((3,)), spec((2,), "key")

proof = evidence.Evidence()
found = {"devices": jax.device_count()}
for workload, transform in [(Both, "sharded"), (Both, "pmap"), (Scalar, "sharded")]:
    prepared = prepare(workload, Case({"factor": 3}, transform))
    passes = [take_pass(prepared, proof, effort_s=0.0005) for _ in range(2)]
    data = prepared.data(passes[0].build.compiled)
    found[f"{workload.__name__} {transform}"] = {
        "stages": [list(taken.samples_ns) for taken in passes],
        "missing": [taken.missing for taken in passes],
        "unable": [taken.unable for taken in passes],
        "refused": [taken.refused for taken in passes],
        "shapes": [leaf.shape for leaf in prepared.abstract],
        "shard": [leaf.sharding.shard_shape(leaf.shape) for leaf in data],
        "devices": [len(leaf.devices()) for leaf in data],
        "donates": "input_output_alias" in passes[0].build.compiled.as_text(),
        "kept": [not leaf.is_deleted() for leaf in data],
    }
mesh = jax.sharding.Mesh(jax.devices(), ("d",))
moved = jax.shard_map(
    lambda x: jax.lax.psum(x.sum(), "d"), mesh=mesh, in_specs=jax.P("d"), out_specs=jax.P()
)
second = jax.device_put(jax.numpy.ones(4), jax.devices()[1])
for name, function, given in [("moved", moved, spec((4,))), ("second", lambda x: x * 2, second)]:
    about = {"targets": ("cpu",), "inputs": lambda self, given=given: given}
    made = type("Made", (Workload,), about | {"function": staticmethod(function)})
    found[name] = take_pass(prepare(made, Case()), proof, effort_s=0.0005).refused
try:
    prepare(Odd, Case({"factor": 3}, "sharded"))
except transforms.NotApplicable as reason:
    found["odd"] = str(reason)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def several():
    """What a process with two CPU devices found out; this process keeps the devices it has."""
    variables = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    variables["JAX_ENABLE_COMPILATION_CACHE"] = "0"
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL], env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.nightly
def test_arguments_that_are_moved_or_on_another_device_are_measured(several):
    assert (several["moved"], several["second"]) == ({}, {})


@pytest.mark.parametrize(
    ("case", "stages", "places"),
    [
        ("Both sharded", CASE_STAGES[:-2], {"shard": [[2, 6], [2], [2]]}),
        ("Scalar sharded", CASE_STAGES[:-2], {"shard": [[4], [], [1]]}),  # a scalar is replicated
        ("Both pmap", CASE_STAGES[1:-2], {"shapes": [[2, 4, 6], [2, 4], [2, 4]]}),
    ],
)
def test_what_is_on_several_devices_has_its_stages_shares_its_inputs_and_donates(
    several, case, stages, places
):
    found = several[case]
    assert found["refused"] == [{}, {}]
    assert found["stages"] == [list(stages)] * 2
    assert [missing["in_flight"] for missing in found["missing"]] == [blocks.TOGETHER] * 2
    assert found["unable"] == [{"compute": "several_devices"}] * 2
    assert found["devices"] == [2, 2, 2]
    assert places.items() <= found.items()
    assert found["donates"]
    assert found["kept"] == [True, True, True]


def test_what_devices_cannot_share_evenly_is_refused(several):
    assert several["devices"] == 2
    assert several["odd"] == (
        "the leading axis of the input at [1] has 3 elements, which 2 devices cannot share evenly"
    )
