"""`compute`: the program that runs is also computed on one thread, in the same process."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.asv.metrics import answers
from harness.frame.load import everything
from harness.jaxhooks import jax_names
from harness.output.tables import stage_table
from harness.stages import compute, registry
from harness.stages.compute import NotComputed, inline_calls
from harness.stages.injection import Injected
from harness.stages.passes import take_pass
from harness.stages.prepared import prepare
from harness.stages.registry import STAGES
from harness.stages.stage import WHY, Unable
from harness.stages.staged_case import StagedCase
from harness.workload.workload import Case, Workload, spec
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")

SHORT_S = 0.0005

ON_ONE_THREAD = """
import os, resource
import jax
from harness.stages.compute import client
from harness.jaxhooks import jax_names
x = jax.numpy.ones((300, 300))
compiled = jax.jit(lambda x: jax.numpy.tanh(x @ x).sum(0) @ x).lower(x).compile()
compiled(x).block_until_ready()
own = client()
assert "NPROC" not in os.environ
stored = jax_names.serialised(compiled.runtime_executable())
call = jax_names.load_into(own, stored).execute_sharded
y = [jax.device_put(x, own.local_devices()[0])]
call(y)
before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
for _ in range(200):
    call(y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)
"""


class Kinds(Workload):
    """Arguments of every kind, one of which is donated and one of which is not used."""

    targets = ("cpu",)
    static = ("factor",)
    donate = ("state",)
    sweep = {"factor": [3]}

    def inputs(self):
        state = {"a": spec((4, 3)), "n": spec((5,), "int32")}
        return state, spec((2,), "key"), spec((7,)), spec((3,), "bfloat16")

    @staticmethod
    def function(state, keys, unused, narrow, *, factor):
        table = jnp.asarray(np.arange(12.0, dtype="float32").reshape(4, 3))
        drawn = jax.vmap(lambda key: jax.random.normal(key, (3,)))(keys).sum(0)
        return {"a": factor * state["a"] + table + drawn, "n": state["n"] + 1}, narrow * 2


class Sorts(Kinds):
    """XLA does not serialise what sorts once it has been called."""

    static = donate = ()
    sweep = {}

    def inputs(self):
        return spec((16,))

    @staticmethod
    def function(x):
        return jnp.take(jnp.sort(x), jnp.argmax(x))


class Back(Workload):
    """Calls Python back."""

    targets = ("cpu",)

    def inputs(self):
        return spec((4,))

    @staticmethod
    def function(x):
        return jax.pure_callback(lambda y: np.asarray(y) + 1, x, x)


def built(of, proof):
    prepared = prepare(of, Case({"factor": 3}) if of is Kinds else Case())
    return take_pass(prepared, proof, effort_s=SHORT_S, steps=("build", "compile"))


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Two cases, two processes, three rounds of calls in each."""
    results = tmp_path_factory.mktemp("compute")
    return results, sweep([Scale], results, "2x1")


@pytest.mark.nightly
def test_a_call_on_one_thread_waits_for_no_other():
    done = subprocess.run([sys.executable, "-c", ON_ONE_THREAD], capture_output=True, check=True)
    assert int(done.stdout) < 20


def test_the_program_that_runs_is_the_one_that_is_computed(proof):
    run = built(Kinds, proof)
    calls = inline_calls(run.build, run.prepared)
    arguments = next(calls.supply)
    given = [np.array(one) for one in arguments[0]]  # a view of it would keep it from being given
    result = calls.call(*arguments).disassemble_into_single_device_arrays()
    assert all(one.is_ready() for of_device in result for one in of_device)
    data = run.prepared.data(run.build.compiled)
    expected = run.build.compiled(*jax.tree_util.tree_map(lambda leaf: leaf.copy(), data))
    for (one,), other in zip(result, jax.tree_util.tree_leaves(expected), strict=True):
        assert (one.dtype, np.asarray(one).tolist()) == (other.dtype, np.asarray(other).tolist())
    assert sum(one.is_deleted() for one in arguments[0]) == 2, "what is donated is given away"
    again = next(calls.supply)
    assert [np.asarray(one).tolist() for one in again[0]] == [one.tolist() for one in given]
    assert calls.donated_bytes == 4 * 3 * 4 + 5 * 4


def test_it_is_a_stage_of_a_pass_like_the_others_and_builds_nothing(proof):
    run = built(Kinds, proof)
    run.prepared.data(run.build.compiled)  # keys are made by programs
    compiled = len(proof.compiled)
    run.take(STAGES["compute"])
    assert len(proof.compiled) == compiled
    assert run.refused == {}
    assert len(run.samples_ns["compute"]) == len(run.cpu_ns["compute"])
    assert min(run.samples_ns["compute"]) > 0


def test_what_sorts_is_computed_though_it_has_been_called(proof):
    run = built(Sorts, proof)
    run.make_ready()
    run.take(STAGES["compute"])
    assert run.unable == {}
    assert run.samples_ns["compute"]


def test_what_cannot_be_computed_so_has_a_code(proof, monkeypatch):
    with pytest.raises(NotComputed) as back:
        inline_calls(built(Back, proof).build, prepare(Back, Case()))
    assert back.value.why == Unable.CALLS_BACK

    def none():
        raise RuntimeError("this release has none")

    compute.client.cache_clear()
    monkeypatch.setattr(jax_names, "inline_cpu_client", none)
    try:
        case = StagedCase(Scale, Case({"size": 8}), proof)
        case.visit(0, lambda stage: None)
        case.call("compute", lambda stage: None)
        taken = case.stages()["compute"]
        assert (taken.unable, taken.samples_ns) == ("no_second_client", [])
        assert registry.reason(taken) == "this JAX makes no second client of the CPU"
        assert "NPROC" not in os.environ
    finally:
        compute.client.cache_clear()
    assert {*WHY} == {*Unable}


def test_every_process_has_it_beside_the_other_stages(swept):
    results, outcome = swept
    good = [one for one in outcome.records if one.workload == "small.Scale"]
    assert len(good) == 2 * 2
    for one in good:
        stages = one.stages
        rounds = compute.ROUNDS + min(stages["compute"].disturbed, 1)
        assert len(stages["compute"].samples_ns) == 4 * rounds
        assert len(stages["execute"].samples_ns) == 4
        assert len(stages["compile"].samples_ns) == 1
        assert {name: stage.method for name, stage in stages.items()} == {
            **{"trace": 1, "lower": 1, "compile": 1},
            **{"dispatch": 3, "execute": 3, "compute": 2, "in_flight": 3},
        }
    table = stage_table(everything(results))
    columns = list(table.columns)
    assert columns.index("compute") == columns.index("execute") + 1
    assert (table["compute"].str.contains("s")).all()
    cases = answers(Scale, outcome.records)["cases"]
    assert all(len(case["compute"]["samples"]) == 2 for case in cases.values())
    facts = harness.program_facts(results)
    assert not facts.duplicated(["workload", "size", "fact", "kind"]).any()


@pytest.mark.nightly
def test_extra_work_is_put_into_its_calls_and_marked(tmp_path):
    cases = [Case({"size": size}, "forward", "cpu").id for size in (8, 16)]
    medians = {f"small.Scale {case}": {"compute": 1e5} for case in cases}
    slow = Injected({"compute": 1.0, "compile": 9.0}, medians)
    usual = sweep([Scale], tmp_path, "1x1")
    lengthy = sweep([Scale], tmp_path, "1x1", injected=slow)
    assert not {r.key for r in usual.records} & {r.key for r in lengthy.records}
    for one in (r for r in lengthy.records if r.workload == "small.Scale"):
        assert one.protocol.endswith(f" with {slow.mark}")
        assert min(one.stages["compute"].samples_ns) > 5e4
    again = sweep([Scale], tmp_path, "1x1", injected=slow)
    assert (lengthy.reused, again.measured, again.reused) == (0, 0, lengthy.measured)
