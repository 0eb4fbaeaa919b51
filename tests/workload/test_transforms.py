from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness.stages.prepared import prepare, wrap
from harness.workload import inputs, transforms
from harness.workload.workload import Case, Workload, spec


class Loss(Workload):
    def inputs(self):
        return spec((4,)), spec((4,))

    @staticmethod
    def function(w, x):
        return jnp.sum(jnp.tanh(w) * x)


class Mixed(Workload):
    """Integers and a Python float among the outputs, integers and a key among the inputs."""

    sweep = {"power": [3]}
    static = ("power",)

    def inputs(self):
        return {"w": spec((4,)), "steps": spec((4,), "int32")}, spec((), "key"), spec((2, 3))

    @staticmethod
    def function(tree, key, y, *, power):
        noise = jax.random.normal(key, (4,))
        return {
            "a": tree["w"] ** power * noise,
            "n": tree["steps"] + 1,
            "b": (jnp.sin(y), 2.5),
        }


def run(workload, case):
    """Return the inputs and the result of a workload's transformed function."""
    prepared = prepare(workload, case)
    arguments = inputs.fill(prepared.arguments)
    return arguments, wrap(prepared)(*arguments, **prepared.static)


def assert_trees_close(one, other):
    assert jax.tree_util.tree_structure(one) == jax.tree_util.tree_structure(other)
    jax.tree_util.tree_map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), one, other)


def test_transforms_are_jaxs():
    arguments, result = run(Loss, Case())
    np.testing.assert_allclose(result, Loss.function(*arguments), rtol=1e-5)
    arguments, (value, gradients) = run(Loss, Case(transform="gradient"))
    np.testing.assert_allclose(value, Loss.function(*arguments), rtol=1e-5)
    assert_trees_close(gradients, list(jax.grad(Loss.function, argnums=(0, 1))(*arguments)))
    arguments, result = run(Mixed, Case({"power": 3}, "vmap"))
    assert arguments[0]["w"].shape == (Mixed.vmap_batch, 4)
    assert_trees_close(result, jax.vmap(functools.partial(Mixed.function, power=3))(*arguments))
    case = Case(transform="gradient")
    integers = type("Integers", (Loss,), {"function": staticmethod(lambda w, x: jnp.argmax(w))})
    with pytest.raises(TypeError, match="'gradient' needs an output with floats; this function"):
        run(integers, case)
    for transform in ("forward", "gradient", "vmap", "pmap"):
        case = Case(transform=transform)
        one, other = (transforms.transformed(Loss, case) for _ in range(2))
        assert one is not other
        assert one.__name__ == Loss.function.__name__ == "function"
        assert transforms.shardings(case, (spec((4,)),)) is None, "only sharded asks for them"


def test_the_gradient_of_a_tree_is_that_of_the_mean_of_its_floats():
    case = Case({"power": 3}, "gradient")
    (tree, key, y), (value, gradients) = run(Mixed, case)

    def by_hand(w, y):
        out = Mixed.function({"w": w, "steps": tree["steps"]}, key, y, power=3)
        return (out["a"].sum() + out["b"][0].sum() + 2.5) / (4 + 6 + 1)

    expected, wanted = jax.value_and_grad(by_hand, argnums=(0, 1))(tree["w"], y)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert_trees_close(gradients, list(wanted))


def test_a_complex_function_is_differentiated_by_its_real_part():
    class Complex(Workload):
        def inputs(self):
            return spec((4,), "complex64")

        @staticmethod
        def function(z):
            return z * z

    (z,), (value, gradients) = run(Complex, Case(transform="gradient"))
    np.testing.assert_allclose(value, (z * z).real.mean(), rtol=1e-5)
    assert_trees_close(gradients, [jax.grad(lambda z: jnp.mean(jnp.real(z * z)))(z)])


def plain(x, scale=2.0, *, shift=1.0):
    """Scale and shift."""
    return x * scale + shift


def closed(offset):
    def inner(x):
        return x + offset

    return inner


class Callable:
    __name__ = "callable_object"

    def __call__(self, x):
        return x + 1


@pytest.mark.parametrize(
    "function",
    [plain, closed(3), jax.jit(plain), functools.partial(plain, scale=3.0), Callable(), jnp.tanh],
    ids=["function", "closure", "jitted", "partial", "object", "of jax"],
)
def test_a_fresh_function_does_the_same_and_is_traced_anew(function, proof):
    array = jnp.arange(3.0)
    twin = transforms.fresh(function)
    assert twin is not function
    assert getattr(twin, "__name__", "") == getattr(function, "__name__", twin.__name__)
    np.testing.assert_array_equal(twin(array), function(array))
    for _ in range(2):
        jax.clear_caches()
        proof.take()
        jax.jit(transforms.fresh(function)).trace(array)
        assert proof.take() == {"trace": 1}
    own = transforms.fresh(plain)
    assert (own(1.0), own(1.0, 5.0, shift=0.0), own.__doc__) == (3.0, 5.0, plain.__doc__)
