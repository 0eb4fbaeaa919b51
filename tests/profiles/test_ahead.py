"""Programs compiled ahead of time, lowerings that compile kernels, bodies that are traced twice."""

import contextlib
import dataclasses
import functools
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

from harness.jaxhooks import events
from harness.profiles.causes.cause import Cause
from harness.profiles.findings import findings
from tests.jaxhooks.recorded import profiled
from tests.profiles import logs
from tests.profiles.made import Made

LEAST_OF_LOWER = 0.3
"""Seconds that a rule sleeps: the sampler looks every 25 ms."""


def chain(length, name):
    """Return a jitted function of so many operations."""

    def function(x):
        for n in range(length):
            x = jnp.tanh(x) * n
        return x

    function.__name__ = function.__qualname__ = name
    return jax.jit(function)


def shape(size):
    return jax.ShapeDtypeStruct((size,), "float32")


def found(run):
    return {one.kind: one for one in reversed(findings(profiled(run)))}


def test_what_was_compiled_ahead_of_time_and_never_called_is_named():
    unused, called, jitted = chain(30, "unused"), chain(5, "called"), chain(5, "jitted")
    x = jnp.ones(3)

    def run():
        for size in (3, 4):
            unused.lower(shape(size)).compile()
        called.lower(shape(3)).compile()(x)
        jitted.lower(shape(3)).compile()
        jitted(x)  # it finds that program

    one = found(run)["uncalled"]
    assert (one.function.name, one.count, one.reached) == ("unused", 2, "compiled")
    assert {built.line.kind for built in one.builds} == {"trace", "lower", "compile"}
    assert (one.remedy.kind, one.remedy.argument) == ("compile what is called", "unused")


def test_programs_that_one_thread_compiles_one_after_another_are_named_with_what_threads_save(
    monkeypatch,
):
    monkeypatch.setattr("harness.profiles.findings.LEAST_S", 0.0)
    steps = [chain(20 + n, f"step{n}") for n in range(4)]
    x = jnp.ones(3)
    one = found(lambda: [step.lower(shape(3)).compile()(x) for step in steps])["ahead"]
    compiles = [built.build_ns for built in one.builds if built.line.kind == "compile"]
    assert (one.count, len(one.functions), one.remedy.id) == (4, 4, "JH097")
    assert one.stage_s == pytest.approx((sum(compiles) - max(compiles)) / 1e9)


def test_buckets_that_are_compiled_ahead_of_time_may_be_so_in_threads():
    step = chain(30, "buckets")
    sizes = range(3, 8)
    arrays = [jnp.ones(size) for size in sizes]

    def run():
        for size, array in zip(sizes, arrays, strict=True):
            step.lower(shape(size)).compile()(array)

    again = found(run)["again"]
    assert (again.cause.kind, again.remedy.kind) == ("shape", "pad")
    assert again.remedy.second == "compile in threads"


def lowered_by(rule):
    """Return a jitted function of one operation that this rule lowers."""
    primitive = Primitive(rule.__name__)
    primitive.def_abstract_eval(lambda aval: aval)
    mlir.register_lowering(primitive, rule)
    return jax.jit(lambda x: primitive.bind(x))


def test_a_lowering_that_compiles_is_named_with_the_function_that_does():
    def kernel(context, operand):
        time.sleep(LEAST_OF_LOWER)  # as Triton's compiler does
        return [operand]

    function, x = lowered_by(kernel), jnp.ones(3)
    first = found(lambda: function(x))["first"]
    assert (first.stage, first.kernel.function) == ("lower", kernel.__qualname__)
    assert first.kernel.line == kernel.__code__.co_firstlineno
    assert 0 < first.kernel.ns <= first.stage_s * 1e9
    assert first.remedy.kind == "kernels in lower"


WAIT = f"import time; time.sleep({LEAST_OF_LOWER})"


@pytest.mark.parametrize(
    ("body", "file", "qualname"),
    [
        (WAIT, "<string>", "__create_fn__.<locals>.__init__"),  # as dataclasses name it
        (WAIT, "<@beartype(rule) at 0x1>", "rule"),
        ("import imported_while_lowered", "<attrs generated methods rule>", "rule"),
    ],
)
def test_what_is_generated_or_imported_is_no_kernel_of_the_lowering(
    body, file, qualname, tmp_path, monkeypatch
):
    (tmp_path / "imported_while_lowered.py").write_text(WAIT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_while_lowered", raising=False)
    names = {}
    exec(compile(f"def rule(context, operand): {body}; return [operand]", file, "exec"), names)
    rule = names["rule"]
    rule.__code__ = rule.__code__.replace(co_qualname=qualname)
    function, x = lowered_by(rule), jnp.ones(3)
    first = found(lambda: function(x))["first"]
    assert (first.stage, first.kernel) == ("lower", None)


def test_what_a_generated_method_calls_was_asked_for_by_who_calls_that():
    @dataclasses.dataclass
    class Grid:
        points: jax.Array = dataclasses.field(
            default_factory=functools.partial(jnp.sinc, np.ones(11, np.float32))
        )

    (first, *_) = profiled(lambda: Grid()).builds
    assert (first.call_site.file, first.call_site.function.rpartition(".")[2]) == (
        __file__,
        "<lambda>",
    )


class Slow:
    """A static value that takes 20 ms to compare."""

    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        time.sleep(0.02)
        return self.n == other.n

    def __hash__(self):
        return hash(self.n)


def test_a_comparison_of_static_values_has_its_seconds_where_jax_compares_each_with_all():
    jitted, x = jax.jit(lambda x, slow: x * slow.n, static_argnums=1), np.ones(3, np.float32)
    again = found(lambda: [jitted(x, Slow(n)) for n in range(5)])["again"]
    assert again.cause.form == "unequal"
    if jax.__version_info__ >= (0, 11):
        assert again.kernel is None
    else:
        assert again.kernel.function == Slow.__eq__.__qualname__
        assert again.kernel.ns > 0


def scan(begin, xs):
    return jax.lax.scan(lambda carry, x: (carry + x, None), begin, xs)[0]


def while_loop(begin, xs):
    return jax.lax.while_loop(lambda carry: carry < 9, lambda carry: carry + xs[0], begin)


def fori_loop(begin, xs):
    both = {"a": begin, "b": begin}
    return jax.lax.fori_loop(0, 3, lambda n, c: {"a": c["b"], "b": c["a"] + xs[n]}, both)["a"]


def promoted_in(function):
    """Return the loops of promoted carries in the first build of a function."""
    (built,) = profiled(lambda: jax.jit(function)(np.ones(3, np.float32))).builds
    return built.line.promoted


@pytest.mark.parametrize("loop", [scan, while_loop])
def test_a_loop_whose_carry_is_promoted_is_recorded_with_its_second_trace(loop):
    (one,) = promoted_in(functools.partial(loop, 0))
    assert one == (loop.__name__, __file__, line_in(loop), "int32", "float32", 1, one.ns)
    assert one.ns > 0


def line_in(function):
    return function.__code__.co_firstlineno + 1


def test_a_loop_in_a_jitted_function_inside_another_belongs_to_the_outer_build():
    inner = jax.jit(functools.partial(scan, 0))
    assert [one.loop for one in promoted_in(lambda xs: inner(xs) * 2)] == ["scan"]


def test_loops_inside_a_body_that_is_traced_twice_are_told_apart():
    def outer(carry, x):
        return carry + scan(0, x * jnp.ones(2)), None

    twice = promoted_in(lambda xs: jax.lax.scan(outer, 0, xs)[0])
    assert sorted(one.line - line_in(scan) == 0 for one in twice) == [False, True, True]


@pytest.mark.parametrize("begin", [0.0, np.float32(0)])
def test_a_carry_of_the_right_dtype_is_no_news_weakly_typed_or_not(begin):
    assert promoted_in(functools.partial(scan, begin)) == ()


def test_a_body_that_raises_in_its_second_trace_is_recorded_as_no_loop():
    def body(carry, x):
        if carry.dtype == np.float32:
            raise ValueError("in the second")
        return carry + x, None

    def total(xs):
        with contextlib.suppress(ValueError):
            jax.lax.scan(body, 0, xs)
        return xs

    assert promoted_in(total) == ()


@pytest.mark.parametrize(("ms", "remedy"), [(49, "JH095"), (50, "JH099")])
def test_a_first_build_names_a_second_trace_that_is_much_of_it(ms, remedy):
    made = Made().build("relax", ms=150, cause=Cause("first"))
    one = events.Promoted("scan", "/p/train.py", 7, "int32", "float32", 1, logs.ns(ms))
    made.lines[-1] = dataclasses.replace(made.lines[-1], promoted=(one,))
    (first,) = findings(made.profile())
    assert (first.promoted, first.remedy.id) == (one if ms == 50 else None, remedy)
