"""A function that its user has jitted: what is measured is that object, with its options."""

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from harness.stages.inside import open_up
from harness.stages.passes import take_pass
from harness.stages.prepared import prepare
from harness.stages.registry import CASE_STAGES
from harness.workload import jitted
from harness.workload.check import check
from harness.workload.transforms import NotApplicable
from harness.workload.workload import Case, Workload, WorkloadError, arguments, spec

SHORT_S = 0.0005

OPTION = {"xla_embed_ir_in_executable": True}


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
        taken = set(run.samples_ns)
        assert taken | set(run.missing) | set(run.unable) == set(CASE_STAGES)
        assert set(CASE_STAGES) - taken <= {"in_flight", *run.unable}, "of a call that is too long"
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


def test_its_inside_is_that_of_a_whole_build_however_often_it_was_built(proof):
    prepared, _ = taken(jax.jit(raised), (spec((8,)), spec((8,))), proof)
    for _ in range(2):
        steps = []
        times = open_up(prepared, steps.append)
        assert (steps, times.reason) == (["trace", "lower", "compile"], "")
        assert "code generation" in {one.group for one in times.groups}


def test_compiler_options_reach_xla(proof):
    _, build = taken(jax.jit(jnp.tanh, compiler_options=OPTION), spec((8,)), proof)
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
    assert own.takes_shapes
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


def test_what_is_called_static_and_traced_is_refused(proof):
    @functools.partial(jax.jit, static_argnums=1, static_argnames="sign")
    def either(x, power, sign=1):
        return sign * x**power

    def declared(*static: str) -> dict[str, Any]:
        return {"sweep": {name: [2] for name in static}, "static": static}

    axes = {"power": 2, "sign": 2}
    prepared, build = taken(either, spec((4,)), proof, axes, **declared("power", "sign"))
    with pytest.raises(WorkloadError, match=r"power, which function traces: .*static_argnums"):
        prepared.check_static(build.lowered)
    prepared, build = taken(either, (spec((4,)), 2), proof, {"sign": 2}, **declared("sign"))
    prepared.check_static(build.lowered)
    assert "integer_pow[y=2]" in str(build.traced.jaxpr)


@pytest.mark.parametrize("transform", ["gradient", "vmap"])
@pytest.mark.parametrize(
    ("function", "inputs", "lost"),
    [
        (raised, (spec((4,)), spec((4,))), "donates arguments"),
        (jax.jit(jnp.sum, static_argnums=1), (spec((4,)), 0), "takes some of its inputs as static"),
        (jax.jit(jnp.sum, compiler_options=OPTION), spec((4,)), "has compiler options"),
        (eqx.filter_jit(jnp.sin, donate="all"), spec((4,)), "donates arguments"),
    ],
)
def test_what_a_transform_would_lose_is_refused_with_the_reason(transform, function, inputs, lost):
    members = {"inputs": lambda self: inputs, "function": staticmethod(function)}
    workload = type("Lost", (Workload,), {**members, "transforms": (transform,)})
    with pytest.raises(NotApplicable, match=f"jitted and {lost}, which {transform} of it would"):
        prepare(workload, Case(transform=transform))


def test_a_transform_of_a_jitted_function_has_the_shapes_of_the_function(proof):
    """Its options are looked at with the inputs as they are, not with an axis in front of them."""
    members = {"inputs": lambda self: spec((2, 3)), "function": jax.jit(lambda x: x @ x.T)}
    prepared = prepare(type("Square", (Workload,), members), Case(transform="vmap"))
    assert prepared.abstract[0].shape == (8, 2, 3)
    assert take_pass(prepared, proof, effort_s=SHORT_S).refused == {}


@pytest.mark.parametrize("donate", [(), ("scale",)])
def test_arguments_by_keyword_are_given_so(donate, proof):
    def scaled(x, *, power, offset, scale):
        return x**power * scale, offset

    given = arguments(spec((8,)), scale=spec((8,)), offset=spec((2,)))
    axes = {"sweep": {"power": [2]}, "static": ["power"]}
    own = jax.jit(scaled, static_argnames="power", donate_argnames=donate)
    for function, fields in ((own, {}), (scaled, {"donate": donate})):
        prepared, build = taken(function, given, proof, {"power": 2}, **axes, **fields)
        assert prepared.donated(build.compiled) == [False, False, bool(donate)]
        assert ("input_output_alias" in build.compiled.as_text()) == bool(donate)
        shapes = [one.shape for one in jax.tree_util.tree_leaves(prepared.abstract)]
        assert shapes == [(8,), (2,), (8,)]


@pytest.mark.parametrize("fields", [{"donate": ("x",)}, {}])
def test_an_array_that_is_donated_and_given_twice_is_refused(fields, proof):
    def added(x, y):
        return x + y

    x = jnp.ones(4)
    function = added if fields else jax.jit(added, donate_argnums=1)
    text = r"the inputs at \[[01]\] and \[[01]\] are one array, which is donated at \[[01]\]: a buf"
    with pytest.raises(WorkloadError, match=text):
        taken(function, (x, x), proof, **fields)
    taken(added, (x, x), proof)


@jax.custom_vjp
def clipped(x):
    return jnp.clip(x, -1, 1)


clipped.defvjp(lambda x: (clipped(x), None), lambda _, g: (3 * g,))


def inside(x):
    return jnp.tanh(x) + 1


class Point(NamedTuple):
    x: Any
    y: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: Any
    depth: int = dataclasses.field(metadata={"static": True})


X16 = spec((16,))


def measured_as_it_is(function, inputs, shows, proof):
    prepared, build = taken(function, inputs, proof)
    assert shows in str(build.traced.jaxpr)
    assert prepared.own is None or build.jitted.function is function
    return build


@pytest.mark.parametrize(
    ("function", "inputs", "shows"),
    [
        (clipped, spec((4,)), "custom_vjp"),
        (jax.jit(clipped), spec((4,)), "custom_vjp"),
        (lambda p, c: p.x * c.weight**c.depth, (Point(2.0, 1.0), Layer(spec((4,)), 3)), "y=3"),
        (lambda k: jax.random.bits(k), spec((), "key"), "random_bits"),
        (jax.jit(lambda x, y: x, keep_unused=True), (spec((4,)), spec((9,))), "f32[9]"),
        (jax.jit(jnp.sin, inline=True), spec((4,)), "sin"),
        (functools.partial(jnp.multiply, 2.0), spec((4,), "bfloat16"), "bf16[4]"),
        (jnp.sum, jax.ShapeDtypeStruct((3, 2), "int32"), "reduce_sum"),
        # What JAX builds and calls inside is no reason to refuse a sample.
        (lambda x: jax.jit(inside)(x), X16, "name=inside"),
        (lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x), X16, "scan["),
        (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), X16, "cond["),
        (lambda x: lax.while_loop(lambda y: y[0] < 9, lambda y: y * 2 + 1, x**2), X16, "while["),
        (jax.checkpoint(inside), X16, "remat"),
        (jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)), X16, "tanh"),
        (lambda x: jnp.take(jnp.sort(x), jnp.argmax(x)), X16, "sort["),
        (lambda x: jnp.linalg.cholesky(jnp.outer(x, x) + 10 * jnp.eye(16)), X16, "cholesky"),
        (lambda x: jnp.abs(jnp.fft.rfft(x)), X16, "fft["),
        (lambda x: x @ np.ones((16, 16), np.float32) + np.arange(16.0), X16, "dot_general"),
    ],
)
def test_other_peoples_objects_and_trees_are_measured_as_they_are(function, inputs, shows, proof):
    build = measured_as_it_is(function, inputs, shows, proof)
    if "f32[9]" in shows:  # what is not used is kept where its user says so
        assert "f32[9]" in build.compiled.as_text()


def test_layers_and_keys_are_measured_as_they_are(proof):
    key, raw = jax.random.key(0), jax.random.PRNGKey(0)
    layer, x = eqx.nn.Linear(4, 2, key=key), spec((4,))
    measured_as_it_is(layer, x, "dot_general", proof)
    measured_as_it_is(layer.__call__, x, "dot_general", proof)
    measured_as_it_is(lambda m, x: m(x), (layer, x), "dot_general", proof)
    both = (lambda k, r: jax.random.normal(k) + jax.random.normal(r)), (key, raw)
    measured_as_it_is(*both, "key<fry>", proof)


def test_a_gradient_is_the_objects_own(proof):
    members = {"inputs": lambda self: spec((4,)), "function": staticmethod(clipped)}
    prepared = prepare(type("Clip", (Workload,), members), Case(transform="gradient"))
    run = take_pass(prepared, proof, effort_s=SHORT_S)
    assert "3.0" in str(run.build.traced.jaxpr)


def test_donation_is_said_where_the_function_is_jitted(proof):
    with pytest.raises(WorkloadError, match=r"function is jitted already.*Donate there"):
        taken(raised, (spec((4,)), spec((4,))), proof, donate=("x",))
