from __future__ import annotations

import re
from collections import Counter

import jax
import jax.numpy as jnp
from jax import lax

from harness.program import stablehlo

X = jax.ShapeDtypeStruct((8, 8), "float32")


def lowered(function):
    return jax.jit(function).lower(X)


def several(x):
    inside = lax.scan(lambda s, _: (jnp.tanh(s @ x), None), x, length=3)[0]
    return jax.nn.relu(inside), jnp.sort(x), lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)


def test_operations_are_counted_by_name_and_sorted():
    kinds = stablehlo.kinds(lowered(lambda x: jnp.sin(jnp.sin(x)) + jnp.cos(x)))
    assert kinds == {"stablehlo.add": 1, "stablehlo.cosine": 1, "stablehlo.sine": 2}
    assert list(kinds) == sorted(kinds)


def test_the_counts_are_those_of_the_text():
    program = lowered(several)
    kinds = stablehlo.kinds(program)
    words = re.findall(
        r'(?:= "?|^ +"?)((?:stablehlo|chlo|func)\.\w+|call)\b', program.as_text(), re.M
    )
    said = Counter("func.call" if word == "call" else word for word in words)
    leaving = {k: n for k, n in said.items() if k != "func.func" and not k.endswith(".return")}
    # A reduction that the text writes as `applies` has its operation in a region all the same.
    assert {k: n for k, n in kinds.items() if k in leaving} == leaving
    assert {"stablehlo.while", "stablehlo.case", "stablehlo.sort", "func.call"} <= set(kinds)


def test_regions_are_entered():
    assert stablehlo.kinds(lowered(lambda x: x.sum())) == {
        "stablehlo.add": 1,
        "stablehlo.constant": 1,
        "stablehlo.reduce": 1,
    }


def test_what_only_holds_the_module_together_is_left_out():
    kinds = stablehlo.kinds(lowered(several))
    assert not {"builtin.module", "func.func", "func.return", "stablehlo.return"} & set(kinds)


def test_the_size_does_not_depend_on_where_the_function_stands():
    source = "def function(x):\n    return jax.numpy.tanh(x @ x)\n"
    sizes = []
    for lines, file in ((0, "a.py"), (3000, "a/much/longer/name.py")):
        names = {"jax": jax}
        exec(compile("\n" * lines + source, file, "exec"), names)
        program = jax.jit(names["function"]).lower(X)
        sizes.append(stablehlo.size_bytes(program))
        assert sizes[-1] < len(program.as_text(debug_info=True))
    assert sizes[0] == sizes[1]


def test_where_there_is_no_module_nothing_is_said():
    class Silent:
        def compiler_ir(self):
            return None

        def as_text(self):
            return None

    assert stablehlo.kinds(Silent()) is None
    assert stablehlo.size_bytes(Silent()) is None
