"""A function that its user has jitted: what is measured is that object, with its options."""

import functools

import jax
import jax.numpy as jnp
import pytest

from harness.declare import jitted
from harness.declare.check import check
from harness.declare.transforms import NotApplicable
from harness.declare.workload import Case, Workload, WorkloadError, spec
from harness.stages.passes import take_pass
from harness.stages.prepared import prepare
from harness.stages.registry import CASE_STAGES

SHORT_S = 0.0005


@functools.partial(jax.jit, donate_argnums=0, static_argnames="power")
def raised(x, y, power=2):
    return x**power + y


class Model:
    @functools.partial(jax.jit, static_argnums=0)
    def step(self, x):
        return x + 1


def taken(function, inputs, proof, axes=None, **fields):
    members = {"inputs": lambda self: inputs, "function": staticmethod(function), **fields}
    workload = type("Own", (Workload,), {"targets": ("cpu",), **members})
    check(workload)
    prepared = prepare(workload, Case(axes or {}))
    passes = [take_pass(prepared, proof, effort_s=SHORT_S) for _ in range(2)]
    for run in passes:
        assert run.refused == {}
        assert set(run.samples_ns) == set(CASE_STAGES)
    return prepared, passes[-1].build


def test_donation_and_statics_are_the_objects_own(proof):
    arguments = (spec((64,)), spec((64,)))
    prepared, build = taken(
        raised, arguments, proof, {"power": 3}, sweep={"power": [3]}, static=["power"]
    )
    assert build.jitted.function is raised
    assert prepared.donated(build.compiled) == [True, False]
    assert build.compiled.memory_analysis().alias_size_in_bytes == 64 * 4
    assert "integer_pow[y=3]" in str(build.traced.jaxpr)


def test_compiler_options_reach_xla(proof):
    option = {"xla_embed_ir_in_executable": True}
    _, build = taken(jax.jit(jnp.tanh, compiler_options=option), spec((8,)), proof)
    assert build.compiled is not None
    wrong = jax.jit(jnp.tanh, compiler_options={"xla_no_such_option": True})
    with pytest.raises(Exception, match="xla_no_such_option"):
        taken(wrong, spec((8,)), proof)


@pytest.mark.parametrize(
    ("function", "before"),
    [(Model().step, 1), (functools.partial(raised, y=1.0), 0), (functools.partial(raised), 0)],
)
def test_bound_methods_and_partials_stay_what_they_are(function, before, proof):
    own = jitted.find(function)
    assert own.is_jax
    assert len(own.before) == before
    count = 1 if own.keywords or before else 2
    taken(function, (spec((4,)),) * count, proof)


@pytest.mark.parametrize(
    "function", [jnp.dot.__wrapped__, lambda x: x, functools.partial(max), str.lower]
)
def test_a_plain_function_is_none(function):
    assert jitted.find(function) is None


def test_python_numbers_are_traced_with_weak_types(proof):
    def scaled(x, factor):
        return x * factor

    _, build = taken(scaled, (spec((4,), "bfloat16"), 0.5), proof)
    assert build.traced.out_info.dtype == jnp.bfloat16
    assert [one.weak_type for one in build.traced.jaxpr.in_avals] == [False, True]


def test_what_is_static_by_position_is_handed_on(proof):
    @functools.partial(jax.jit, static_argnums=1)
    def activated(x, activation):
        return activation(x)

    _, build = taken(activated, (spec((4,)), jnp.tanh), proof)
    assert "tanh" in str(build.traced.jaxpr)


@pytest.mark.parametrize("transform", ["gradient", "vmap"])
def test_a_transform_that_would_lose_donation_is_refused_with_the_reason(transform):
    class Lost(Workload):
        transforms = (transform,)
        function = staticmethod(raised)

        def inputs(self):
            return spec((4,)), spec((4,))

    with pytest.raises(NotApplicable, match=f"donates arguments, which {transform} of it would"):
        prepare(Lost, Case(transform=transform))


def test_donation_is_said_where_the_function_is_jitted():
    class Twice(Workload):
        donate = ("x",)
        function = staticmethod(raised)

        def inputs(self):
            return spec((4,)), spec((4,))

    with pytest.raises(WorkloadError, match=r"function is jitted already.*Donate there"):
        check(Twice)
