"""The program that tells how fast a machine is."""

import jax

from harness.stages.reference import Reference


def test_the_reference_computes_what_it_says():
    shapes = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in Reference().inputs()]
    traced = jax.jit(Reference.function).trace(*shapes)
    assert (traced.out_info.shape, traced.out_info.dtype) == ((64,), "float32")
    kinds = {equation.primitive.name for equation in traced.jaxpr.eqns}
    assert {"mul", "tanh", "reduce_sum", "add"} <= kinds
