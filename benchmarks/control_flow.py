"""Structured control flow: loops and branches that stay in the compiled program."""

import jax
import jax.numpy as jnp

from harness import Workload, spec


class Scan(Workload):
    """A recurrent cell under `scan`, and its gradient: cost per iteration of a compiled loop.

    The body is traced, lowered and compiled once whatever the length, so only the run time should
    grow. The gradient stores what each iteration needs and scans backwards.
    """

    sweep = {"length": [16, 256]}
    static = ("length",)
    transforms = ("forward", "gradient")

    def inputs(self):
        # Weights of spectral radius just below one, or the gradient overflows over 256 steps.
        return spec((64, 64), low=-0.2, high=0.2), spec((64,))

    @staticmethod
    def function(w, state, *, length):
        def cell(state, _):
            state = jnp.tanh(w @ state)
            return state, state

        return jax.lax.scan(cell, state, length=length)


class WhileLoop(Workload):
    """Newton's iteration for a square root until it converges: a trip count that data decides.

    Under `vmap` the predicate has a batch axis, so the loop runs until the last example is done
    and selects, on each iteration, which examples may still change. Reverse mode is not defined.
    """

    transforms = ("forward", "vmap")

    def inputs(self):
        return spec((), low=1.0, high=100.0)

    @staticmethod
    def function(x):
        def unfinished(root):
            return jnp.abs(root * root - x) > 1e-4 * x

        def newton(root):
            return (root + x / root) / 2

        return jax.lax.while_loop(unfinished, newton, x)


class Cond(Workload):
    """A cheap and an expensive branch: only one should run.

    Under `vmap` the predicate has a batch axis and the branch becomes a select, so both branches
    run for every example.
    """

    transforms = ("forward", "vmap")

    def inputs(self):
        return spec((), "bool"), spec((128, 128))

    @staticmethod
    def function(expensive, x):
        return jax.lax.cond(expensive, lambda x: jnp.tanh(x @ x), lambda x: -x, x)


class UnrolledLoop(Workload):
    """A loop of 64 iterations, unrolled by a static factor: program size against loop overhead.

    The body is traced once and the work at run time is the same for each factor; lowering and
    compilation grow with it.
    """

    sweep = {"unroll": [1, 4, 16]}
    static = ("unroll",)

    def inputs(self):
        return spec((16, 16)), spec((16,))

    @staticmethod
    def function(w, x, *, unroll):
        return jax.lax.fori_loop(0, 64, lambda _, x: jnp.tanh(w @ x), x, unroll=unroll)
