import re
from collections import Counter
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from harness.program import stablehlo

X = jax.ShapeDtypeStruct((8, 8), "float32")


def lowered(function):
    return jax.jit(function).lower(X)


def several(x):
    inside = lax.scan(lambda s, _: (jnp.tanh(s @ x), None), x, length=3)[0]
    return jax.nn.relu(inside), jnp.sort(x), lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)


@pytest.mark.parametrize(
    ("function", "counts"),
    [
        (lambda x: jnp.sin(jnp.sin(x)) + jnp.cos(x), [("add", 1), ("cosine", 1), ("sine", 2)]),
        (lambda x: x.sum(), [("add", 1), ("constant", 1), ("reduce", 1)]),
    ],
)
def test_operations_are_counted_by_name_and_sorted_and_regions_are_entered(function, counts):
    kinds = stablehlo.kinds(lowered(function))
    assert list(kinds.items()) == [(f"stablehlo.{name}", count) for name, count in counts]


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
    # What only holds the module together is left out.
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
    silent = SimpleNamespace(compiler_ir=lambda: None, as_text=lambda: None)
    assert stablehlo.kinds(silent) is None
    assert stablehlo.size_bytes(silent) is None
