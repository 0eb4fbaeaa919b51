"""What is a build, of which function, and how often each stage was done."""

import functools
import gc
import inspect
import subprocess
import sys
import time
import weakref
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

import harness
from harness.jaxhooks import call_sites, events
from harness.jaxhooks.description import Describer
from tests.jaxhooks.recorded import builds, lines, named, profiled, times

X = np.ones(3, np.float32)


def line_of(function):
    return int(inspect.unwrap(function).__code__.co_firstlineno)


def test_a_call_is_traced_lowered_and_compiled_once_one_after_the_other_and_never_again():
    def f(x):
        return x * 2

    jitted = jax.jit(f)

    def run():
        for _ in range(3):
            jitted(X)

    (built,) = builds(run)
    assert times(built) == {"trace": 1, "lower": 1, "compile": 1}
    assert (built.line.kind, built.function.name, built.function.line) == ("call", "f", line_of(f))
    assert built.frames[-1].function.endswith("run")
    assert len(built.line.requests) == 1
    ends = [built.line.begin_ns]
    for span in built.line.spans:
        assert ends[-1] <= span.begin_ns < span.end_ns
        ends.append(span.end_ns)
    assert ends[-1] <= built.line.end_ns


def test_what_the_profile_adds_ahead_of_time_is_counted_as_its_own(monkeypatch):
    for name in ("link_trace", "link_lower"):
        monkeypatch.setattr(Describer, name, lambda *_: time.sleep(0.02))
    found = builds(lambda: jax.jit(lambda x: x - 3).trace(X).lower())
    assert [built.line.own_ns > 20e6 for built in found] == [True, True]


def test_a_traced_function_of_the_users_is_inner_and_no_build():
    @jax.jit
    def helper(x):
        return jnp.sin(x)

    @jax.jit
    def outer(x):
        return helper(x) + helper(x)

    (built,) = builds(lambda: outer(X))
    assert times(built)["trace"] == 1
    (inner,) = built.line.inner
    assert built.process.functions[inner.function].name == "helper"
    assert inner.times == 1
    assert built.line.begin_ns < inner.begin_ns < inner.end_ns < built.line.end_ns


def test_what_is_compiled_while_another_is_traced_is_a_build_in_it():
    @jax.jit
    def inside(x):
        return x * 3

    @jax.jit
    def outer(x):
        with jax.ensure_compile_time_eval():
            constant = inside(np.float32(2))
        return x * constant

    found = builds(lambda: outer(X))
    (above,), (below,) = named(found, "outer"), named(found, "inside")
    assert len(found) == 2
    assert below.line.parent == above.line.id
    assert above.line.parent == 0
    assert times(below) == times(above) == {"trace": 1, "lower": 1, "compile": 1}
    trace = above.line.spans[0]
    assert trace.begin_ns < below.line.begin_ns < below.line.end_ns < trace.end_ns
    # Also where a function that is traced on the way, and is no build, asks for it.
    around = jax.jit(lambda x: jax.jit(lambda x: outer.__wrapped__(x) + 1)(x))
    jax.clear_caches()
    above, below = builds(lambda: around(X))
    assert (above.line.parent, below.line.parent) == (0, above.line.id)


def test_a_callback_that_compiles_is_a_build_and_lies_in_no_span():
    @jax.jit
    def inside(x):
        return x + 4

    def f(x):
        return jax.pure_callback(
            lambda y: np.asarray(inside(np.asarray(y))), jax.ShapeDtypeStruct((3,), np.float32), x
        )

    found = builds(lambda: jax.block_until_ready(jax.jit(f)(X)))
    assert [built.line.parent for built in named(found, "inside")] == [0]
    assert len(named(found, "f")) == 1


def test_the_backward_pass_carries_the_function_it_comes_from():
    @jax.jit
    def loss(w):
        return (w**2).sum()

    found = named(builds(lambda: jax.grad(loss)(X)), "loss")
    assert [times(built) for built in found] == [
        {"trace": 1, "lower": 1, "compile": 1},
        {"lower": 1, "compile": 1},
    ]
    # Differentiating what was traced is tracing, too.
    assert [(span.stage, span.times) for span in found[0].line.spans[:2]] == [
        ("trace", 1),
        ("trace", 0),
    ]
    assert {(one.function.file, one.function.line) for one in found} == {(__file__, line_of(loss))}
    assert all(built.frames[-1].file == __file__ for built in found)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: jax.vmap(f),
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        lambda f: jax.jit(jax.checkpoint(f)),
        lambda f: jax.pmap(f),
    ],
    ids=["vmap", "jvp", "checkpoint", "pmap"],
)
def test_a_transformed_function_is_found_at_the_call(transform):
    @jax.jit
    def f(x):
        return jnp.tanh(x)

    x = jnp.ones((1, 2))
    found = builds(lambda: transform(f)(x))
    assert any(
        built.function.name == "f" or built.line.inner or built.function.file == __file__
        for built in found
    )
    assert all(built.frames[-1].file == __file__ for built in found)


MESH, SPEC = Mesh(np.array(jax.devices()[:1]), ("i",)), PartitionSpec("i")


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        (lambda f: jax.jit(jax.shard_map(f, mesh=MESH, in_specs=SPEC, out_specs=SPEC)), "call"),
        (jax.make_jaxpr, "trace"),
        (lambda f: lambda x: jax.eval_shape(f, x), "trace"),
    ],
)
def test_a_function_that_is_mapped_or_only_traced_is_one_build(how, kind):
    def f(x):
        return x * 2

    (built,) = builds(lambda: how(f)(X))
    done = {"trace": 1} if kind == "trace" else {"trace": 1, "lower": 1, "compile": 1}
    assert (built.line.kind, times(built)) == (kind, done)
    assert (built.function.name, built.function.line) == ("f", line_of(f))


def test_ahead_of_time_each_stage_knows_the_function_and_the_arguments():
    @functools.partial(jax.jit, static_argnames="n")
    def f(x, n):
        return x * n

    def run():
        lowered = f.trace(X, n=3).lower()
        lowered.compile()
        lowered.compile({"xla_dump_max_hlo_modules": 7})

    found = builds(run)
    assert [built.line.kind for built in found] == ["trace", "lower", "compile", "compile"]
    assert [times(built) for built in found] == [{built.line.kind: 1} for built in found]
    assert {(built.function.name, built.line.object, built.line.wrapper) for built in found} == {
        ("f", found[0].line.object, found[0].line.wrapper)
    }
    for built in found:
        assert built.arguments.leaves[0].path == "x"
        assert built.arguments.statics[0].value == "3"
    assert found[3].settings.jit["compiler_options"] == "xla_dump_max_hlo_modules=7"


def test_an_exported_function_with_a_symbolic_shape():
    argument = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), np.float32)
    found = builds(lambda: jax.export.export(jax.jit(lambda x: x + 1))(argument))
    assert [built.line.kind for built in found] == ["trace", "lower"]
    assert found[1].arguments.leaves[0].aval == "float32[n]"


def test_an_eager_operation_is_a_build_of_jaxs():
    x = jnp.ones(5)
    found = builds(lambda: jax.lax.cosh(x))
    assert [(built.function.name, built.function.origin) for built in found] == [("cosh", "jax")]
    assert found[0].frames[-1].file == __file__


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_trace_that_raises_is_a_build_with_an_error(error):
    def f(x):
        raise error

    def run():
        with pytest.raises(error):
            jax.jit(f)(X)
        jax.jit(lambda x: x + 9)(X)

    first, second = builds(run)
    assert (first.line.error, times(first)) == (error.__name__, {"trace": 1})
    assert (second.line.error, second.line.parent) == ("", 0)
    assert first.arguments.leaves[0].path == "x"


def test_program_facts_are_noted():
    (built,) = builds(lambda: jax.jit(lambda x: x @ x)(np.ones((8, 8), np.float32)))
    program = built.line.program
    assert program is not None
    assert (program.argument_bytes, program.output_bytes) == (256, 256)
    assert program.flops >= 2 * 8**3
    assert program.fingerprint


def test_visits_that_build_nothing_are_counted():
    f = jax.jit(lambda x: x * 7)
    x = jnp.ones(3)
    jax.vmap(f)(x)

    def run():
        for _ in range(50):
            jax.vmap(f)(x)

    found = profiled(run)
    assert found.builds == ()
    (visits,) = lines(found, events.Visits)
    assert visits.count == 50
    assert visits.seconds > 0


def test_cleared_caches_are_noted_with_their_place():
    f = jax.jit(lambda x: x * 11)

    def run():
        f(X)
        f.clear_cache()
        jax.clear_caches()
        f(X)

    found = profiled(run)
    cleared = lines(found, events.Cleared)
    assert [line.what for line in cleared] == ["clear_cache", "jax.clear_caches"]
    stacks = found.processes[0].stacks
    assert all(stacks[line.stack].frames[-1].file == __file__ for line in cleared)
    assert found.processes[0].functions[cleared[0].function].line == found.builds[0].function.line
    assert [times(built)["trace"] for built in found.builds] == [1, 1]


def test_nothing_of_the_programs_is_kept_alive():
    f = jax.jit(lambda x: x * 21)
    references = []

    def run():
        for how in (f, jax.vmap(f), jax.vmap(f), f.trace, lambda x: f.trace(x).lower().compile()):
            x = jnp.arange(4.0) + 1
            how(x)
            references.append(weakref.ref(x))

        def closure(x):
            return x * 22

        jax.jit(closure)(X)
        references.append(weakref.ref(closure))

    with harness.profile() as found:
        run()
        gc.collect()
        assert [reference() for reference in references] == [None] * 6
    assert found.builds


def test_jaxs_own_functions_in_a_trace_count_as_nested_and_those_that_compile_as_builds():
    def f(x):
        y = jax.lax.fori_loop(0, 3, lambda _, y: jnp.where(y > 0, jnp.sinh(y), y), x)
        with jax.ensure_compile_time_eval():
            z = jnp.sinh(np.float32(2))
        return y + z

    jax.clear_caches()
    found = builds(lambda: jax.jit(f)(X))
    (above,) = named(found, "f")
    (below,) = named(found, "sinh")
    assert below.line.parent == above.line.id
    assert above.line.nested >= 3
    assert times(above)["trace"] == 1


def test_lines_noted_by_instruction_are_those_of_the_frame():
    def here():
        frame = sys._getframe()
        return call_sites.places(frame).frames(), frame.f_lineno

    frames, line = here()
    assert (frames[-1].function.split(".")[-1], frames[-1].line) == ("here", line)


@pytest.mark.parametrize("file", ["lib/core.py", "single.py"])
def test_what_pip_puts_into_a_folder_is_a_librarys(tmp_path, monkeypatch, file):
    wheel, folder = tmp_path / "lib-1-py3-none-any.whl", tmp_path / "deps"
    info = "lib-1.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(file, "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: lib\nVersion: 1\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{file},,\n")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--target"]
    subprocess.run([*pip, str(folder), str(wheel)], check=True)
    monkeypatch.syspath_prepend(folder)
    assert call_sites.origin_of(str(folder / file)) == "library"
    assert call_sites.origin_of(str(folder / "mine.py")) == "program"
