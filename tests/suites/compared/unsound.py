"""Comparisons with one mistake each."""

import jax.numpy as jnp
import numpy as np

from harness import Workload, spec


class Pair(Workload):
    """Two vectors; subclasses make one mistake."""

    targets = ("cpu",)

    def inputs(self):
        return spec((256,)), spec((256,))

    function = staticmethod(lambda a, b: jnp.tanh(a) + b)
    baseline = staticmethod(lambda xp, a, b: xp.tanh(a) + b)


class Sound(Pair):
    """No mistake, so that the tests of the others mean something."""


class Mutates(Pair):
    """The baseline writes into its input."""

    @staticmethod
    def baseline(xp, a, b):
        total = xp.tanh(a) + b
        b += 1
        return total


class WrongTree(Pair):
    """The baseline returns a tuple with an output too many."""

    baseline = staticmethod(lambda xp, a, b: (xp.tanh(a) + b, b))


class MissingOutput(Pair):
    """The baseline leaves an output out."""

    function = staticmethod(lambda a, b: {"sum": a + b, "product": a * b})
    baseline = staticmethod(lambda xp, a, b: {"sum": a + b})


class Raises(Pair):
    """The baseline raises."""

    @staticmethod
    def baseline(xp, a, b):
        raise ArithmeticError("on purpose")


class OtherBaseline(Pair):
    """The baseline is off by one part in a thousand, and there is no reference."""

    baseline = staticmethod(lambda xp, a, b: (xp.tanh(a) + b) * 1.001)


class WrongValues(OtherBaseline):
    """The same, and its reference is right."""

    reference = staticmethod(lambda np, a, b: np.tanh(a) + b)


class OtherFunction(Pair):
    """The function is off, and there is no reference."""

    function = staticmethod(lambda a, b: (jnp.tanh(a) + b) * 1.001)


class CancellingBaseline(Pair):
    """The baseline loses half of its digits in float32, and none that count in float64."""

    baseline = staticmethod(lambda xp, a, b: xp.exp(xp.log(xp.tanh(a) + 1e4)) - 1e4 + b)


class CancellingFunction(Pair):
    """The function loses half of its digits in float32, and none that count in float64."""

    function = staticmethod(lambda a, b: jnp.exp(jnp.log(jnp.tanh(a) + 1e4)) - 1e4 + b)


class NarrowFunction(Pair):
    """The function computes in float16."""

    function = staticmethod(lambda a, b: jnp.tanh(a.astype("float16")).astype(a.dtype) + b)


class WrongShape(Pair):
    """The baseline keeps an axis."""

    baseline = staticmethod(lambda xp, a, b: (xp.tanh(a) + b)[None])


class Double(Pair):
    """The baseline computes in float64."""

    baseline = staticmethod(lambda xp, a, b: xp.tanh(xp.astype(a, xp.float64)) + b)


class Constant(Pair):
    """One input is all ones."""

    def inputs(self):
        return np.ones(256, "float32"), spec((256,))


class Unused(Pair):
    """The JAX function does not need one of its arguments."""

    function = staticmethod(lambda a, b: jnp.tanh(a))
    baseline = staticmethod(lambda xp, a, b: xp.tanh(a))


class NotANumber(Pair):
    """The baseline lets NaN through where the JAX function does not."""

    function = staticmethod(lambda a, b: jnp.where(a > 0, jnp.sqrt(jnp.abs(a)), 0))
    baseline = staticmethod(lambda xp, a, b: xp.sqrt(a) + 0 * b)

    reference = staticmethod(lambda np, a, b: np.where(a > 0, np.sqrt(np.abs(a)), 0))


class UsesJax(Pair):
    """The baseline computes with JAX, which nobody waits for."""

    baseline = staticmethod(lambda xp, a, b: jnp.tanh(a) + b)


class Donates(Pair):
    """Its inputs are donated."""

    donate = ("a",)


class Uncompiled(Pair):
    """The fused baseline needs what is not installed."""

    @staticmethod
    def fused_cpu():
        import a_compiler_that_is_not_there as compiler

        return compiler.compile()


class LooseProduct(Workload):
    """Its product is computed as TF32 would: the inputs are cut to eleven bits first."""

    targets = ("cpu",)

    def inputs(self):
        return spec((64, 64)), spec((64, 64))

    function = staticmethod(lambda a, b: a @ b)

    @staticmethod
    def baseline(xp, a, b):
        def cut(x):
            return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)

        return cut(a) @ cut(b)

    reference = staticmethod(lambda np, a, b: a @ b)


class LargeProduct(Workload):
    """A product that takes milliseconds: long enough to be asked about before it is done."""

    targets = ("cpu",)

    def inputs(self):
        return spec((512, 512)), spec((512, 512))

    function = staticmethod(lambda a, b: a @ b)
    baseline = staticmethod(lambda xp, a, b: a @ b)
