"""What one release of JAX does: a process with JAX alone, and a fork of it per experiment.

Started as ``python -P experiments.py`` by any interpreter that has JAX; the last line of its output
is a JSON object with the result of each experiment, a text or a number, by its name. With `reads`
behind it, it calls the exports of other releases that come on standard input. Only the
standard library, NumPy and JAX are imported. An experiment that raises has the error's type and
the beginning of its text for its result.
"""

import base64
import collections
import json
import os
import re
import sys
import warnings
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

EXPERIMENTS = {}
"""Area, title and function of each experiment by its name."""

X = np.linspace(-1, 1, 8, dtype=np.float32)
SHORT = 60

SURPRISES = (
    "static_equal_tuples",
    "context_device",
    "context_precision",
    "scan_promoted",
    "eager_map",
    "eager_shard_map",
    "eager_loop",
    "closed_over",
    "flops_sort",
    "flops_top_k",
    "flops_complex",
    "flops_scan",
    "python_float",
    "export_zero",
    "export_namedtuple",
    "export_donated",
    "export_vmap",
    "export_callback",
)
"""Experiments that go otherwise than most expect: the page names them where no release differs."""


def experiment(area, title):
    def enter(function):
        EXPERIMENTS[function.__name__] = area, title, function
        return function

    return enter


def rows(area, cases):
    """Enter a row of each case: its name, title, and what gives its result."""
    for name, (title, function) in cases.items():
        EXPERIMENTS[name] = area, title, function


def counted(event, function):
    """Return how often JAX reports an event while a function runs."""
    events = []

    def hear(name, *_, **__):
        events.append(name)

    jax.monitoring.register_event_duration_secs_listener(hear)
    function()
    return events.count(f"/jax/core/compile/{event}_duration")


def compiles(function, *calls):
    """Return how many programs XLA is given in a call with each of some arguments, in a row."""
    jax.block_until_ready([jnp.float32(0), jnp.zeros(3)])
    return " ".join(
        str(counted("backend_compile", lambda one=one: jax.block_until_ready(function(*one))))
        for one in calls
    )


def equations(jaxpr):
    """Return the number of equations of a jaxpr, those inside its equations included."""
    total = 0
    for equation in jaxpr.eqns:
        inner = [
            getattr(one, "jaxpr", one)
            for value in equation.params.values()
            for one in (value if isinstance(value, (tuple, list)) else [value])
            if hasattr(getattr(one, "jaxpr", one), "eqns")
        ]
        total += sum(map(equations, inner)) if inner else 1
    return total


def module(function, *arguments, **options):
    """Return the text of the module that XLA is given."""
    return jax.jit(function, **options).lower(*arguments).as_text()


def operations(function, *arguments):
    """Return the number of operations of a module."""
    return len(re.findall(r"= \"?(?:stablehlo|chlo|mhlo)\.", module(function, *arguments)))


def called(function, *arguments):
    """Return the custom calls of a module, sorted."""
    text = module(function, *arguments)
    return ", ".join(sorted(set(re.findall(r"custom_call @([\w.$]+)", text)))) or "none"


def hlo(function, *arguments):
    """Return the text of a compiled program."""
    return jax.jit(function).lower(*arguments).compile().as_text()


def cost(key, function, *arguments):
    """Return a number of XLA's cost analysis."""
    found = jax.jit(function).lower(*arguments).compile().cost_analysis()
    found = found[0] if isinstance(found, list) else found
    return int(found.get(key, 0))


def matrix(n=64, dtype="float32"):
    return jnp.asarray(np.random.default_rng(0).normal(size=(n, n)), dtype)


# Tracing


@experiment("tracing", "`__eq__` calls for 200 different values of a static argument, rounded")
def static_comparisons():
    class Value:
        calls = 0

        def __init__(self, number):
            self.number = number

        def __hash__(self):
            return self.number

        def __eq__(self, other):
            Value.calls += 1
            return isinstance(other, Value) and self.number == other.number

    jitted = jax.jit(lambda value, x: x * value.number, static_argnums=0)
    for number in range(200):
        jitted(Value(number), X)
    return round(Value.calls, -4)  # how often hashes collide differs a little


def _traces(values):
    traced = []

    def function(x, value):
        traced.append(value)
        return x * 2

    jitted = jax.jit(function, static_argnums=1)
    for value in values:
        jitted(X, value)
    return len(traced)


def _context(context):
    traced = []

    def function(x):
        traced.append(1)
        return x * 2

    jitted, x = jax.jit(function), jnp.asarray(X)

    def both():
        jitted(x)
        with context():
            jitted(x)

    compiled = counted("backend_compile", both)
    return f"{len(traced)} traces, {compiled} compiles"


def _runs(control):
    """Return how often the Python body of a control flow primitive runs."""
    ran = []

    def body(*arguments):
        ran.append(1)
        return arguments

    jax.make_jaxpr(lambda x: control(body, x))(X)
    return len(ran)


def _promoted():
    ran = []

    def body(carry, x):
        ran.append(1)
        return carry + x, x

    jax.make_jaxpr(lambda xs: lax.scan(body, 0, xs))(X)
    return len(ran)


def _primitive(function):
    return str(jax.make_jaxpr(function)(X).jaxpr.eqns[0].primitive)


def _shard_map():
    jax.config.update("jax_num_cpu_devices", 2)
    mesh = Mesh(np.array(jax.devices()), ("i",))
    mapped = jax.shard_map(
        lambda x: jnp.tanh(x) + 1, mesh=mesh, in_specs=PartitionSpec("i"),
        out_specs=PartitionSpec("i"),
    )  # fmt: skip
    return compiles(mapped, [X], [X], [X])


def _put():
    jax.config.update("jax_num_cpu_devices", 2)
    mesh = Mesh(np.array(jax.devices()), ("i",))
    x = jnp.asarray(X)
    return compiles(lambda: jax.device_put(x, NamedSharding(mesh, PartitionSpec("i"))), [], [])


rows(
    "tracing",
    {
        "static_equal_tuples": (
            "traces for the static values (1,), (1.0,), (True,)",
            lambda: _traces([(1,), (1.0,), (True,)]),
        ),
        "static_equal_numbers": (
            "traces for the static values 1, 1.0, True",
            lambda: _traces([1, 1.0, True]),
        ),
        "static_namedtuples": (
            "traces for a static namedtuple and an equal tuple",
            lambda: _traces([collections.namedtuple("Pair", "a b")(1, 2), (1, 2)]),
        ),
        "context_device": (
            "a call, and one under `default_device` of the same device",
            lambda: _context(lambda: jax.default_device(jax.devices()[0])),
        ),
        "context_precision": (
            "a call without a product, and one under another `default_matmul_precision`",
            lambda: _context(lambda: jax.default_matmul_precision("float32")),
        ),
        "context_promotion": (
            "a call, and one under `numpy_dtype_promotion('strict')`",
            lambda: _context(lambda: jax.numpy_dtype_promotion("strict")),
        ),
        "context_nans": (
            "a call, and one under `debug_nans`",
            lambda: _context(lambda: jax.debug_nans(True)),
        ),
        "scan_promoted": ("runs of a scan's body that promotes its carry", _promoted),
        "scan_body": (
            "runs of a scan's body",
            lambda: _runs(lambda body, x: lax.scan(lambda c, y: body(c, y), 0.0, x)),
        ),
        "while_body": (
            "runs of a while loop's body",
            lambda: _runs(
                lambda body, x: lax.while_loop(lambda y: y.sum() > 0, lambda y: body(y)[0], x)
            ),
        ),
        "primitive_jit": (
            "primitive of jit inside jit",
            lambda: _primitive(jax.jit(lambda x: x + 1)),
        ),
        "primitive_checkpoint": (
            "primitive of `jax.checkpoint`",
            lambda: _primitive(jax.checkpoint(lambda x: jnp.sin(x))),
        ),
        "primitive_empty": (
            "primitive of `jnp.empty`",
            lambda: _primitive(lambda x: jnp.empty((3,)) + x[:3]),
        ),
        "equations_softmax": (
            "equations of `jax.nn.softmax`",
            lambda: equations(jax.make_jaxpr(jax.nn.softmax)(X).jaxpr),
        ),
        "equations_softmax_grad": (
            "equations of softmax's gradient",
            lambda: equations(jax.make_jaxpr(jax.grad(lambda x: jax.nn.softmax(x)[0]))(X).jaxpr),
        ),
        "equations_gelu": (
            "equations of `jax.nn.gelu`",
            lambda: equations(jax.make_jaxpr(jax.nn.gelu)(X).jaxpr),
        ),
        "equations_attention": (
            "equations of `jax.nn.dot_product_attention`",
            lambda: equations(
                jax.make_jaxpr(jax.nn.dot_product_attention)(
                    *[np.ones((2, 8, 2, 4), "f4")] * 3
                ).jaxpr
            ),
        ),
        "equations_var": (
            "equations of `jnp.var`",
            lambda: equations(jax.make_jaxpr(jnp.var)(X).jaxpr),
        ),
        "equations_normal": (
            "equations of `jax.random.normal`",
            lambda: equations(
                jax.make_jaxpr(lambda key: jax.random.normal(key, (8,)))(jax.random.key(0)).jaxpr
            ),
        ),
        "equations_scan_grad": (
            "equations of the gradient of a scan",
            lambda: equations(
                jax.make_jaxpr(
                    jax.grad(lambda x: lax.scan(lambda c, y: (jnp.sin(c) * y, c), x[0], x)[0])
                )(X).jaxpr
            ),
        ),
        "equations_solve": (
            "equations of `jnp.linalg.solve`",
            lambda: equations(jax.make_jaxpr(jnp.linalg.solve)(np.eye(3), np.ones(3)).jaxpr),
        ),
        "eager_map": (
            "programs of `lax.map` outside jit, a new function each of 3 times",
            lambda: compiles(lambda: lax.map(lambda x: x + 1, X), [], [], []),
        ),
        "eager_scan": (
            "programs of `lax.scan` outside jit, the same function 3 times",
            lambda: compiles(lambda f: lax.scan(f, 0.0, X), *[[lambda c, y: (c + y, y)]] * 3),
        ),
        "eager_cond": (
            "programs of `lax.cond` outside jit, new functions each of 3 times",
            lambda: compiles(
                lambda: lax.cond(True, lambda x: x + 1, lambda x: x - 1, X), [], [], []
            ),
        ),
        "eager_shard_map": ("programs of `shard_map` outside jit, 3 calls", _shard_map),
        "eager_put": ("programs of `device_put` to two devices, twice", _put),
        "eager_index": (
            "programs of `x[i]` for 3 values of i",
            lambda: compiles(lambda i: jnp.asarray(X)[i], [0], [1], [2]),
        ),
        "eager_slice": (
            "programs of `x[i:i + 3]` for 3 values of i",
            lambda: compiles(lambda i: jnp.asarray(X)[i : i + 3], [0], [1], [2]),
        ),
        "eager_set": (
            "programs of `x.at[i].set(1.0)` for 3 values of i",
            lambda: compiles(lambda i: jnp.asarray(X).at[i].set(1.0), [0], [1], [2]),
        ),
        "eager_normal": (
            "programs of `jax.random.normal(jax.random.key(i), (8,))` for 3 values of i",
            lambda: compiles(lambda i: jax.random.normal(jax.random.key(i), (8,)), [0], [1], [2]),
        ),
        "eager_split": (
            "programs of `jax.random.split(key, n)` for n of 2, 3, 4",
            lambda: compiles(lambda n: jax.random.split(jax.random.key(0), n), [2], [3], [4]),
        ),
        "eager_where": (
            "programs of `jnp.where(x > c, x, c)` for 3 values of c",
            lambda: compiles(lambda c: jnp.where(jnp.asarray(X) > c, X, c), [0.0], [0.1], [0.2]),
        ),
        "eager_linspace": (
            "programs of `jnp.linspace(0, i, 5)` for 3 values of i",
            lambda: compiles(lambda i: jnp.linspace(0, i, 5), [1], [2], [3]),
        ),
        "eager_norm": (
            "programs of `jnp.linalg.norm`, twice",
            lambda: compiles(lambda: jnp.linalg.norm(jnp.asarray(X)), [], []),
        ),
        "eager_percentile": (
            "programs of `jnp.percentile(x, q)` for 3 values of q",
            lambda: compiles(lambda q: jnp.percentile(jnp.asarray(X), q), [10], [20], [30]),
        ),
        "eager_loop": (
            "programs of `lax.fori_loop(0, n, ...)` outside jit for n of 3, 4, 5",
            lambda: compiles(
                lambda f, n: lax.fori_loop(0, n, f, 1.0),
                *[[one, n] for one in [lambda i, c: c * 2] for n in (3, 4, 5)],
            ),
        ),
    },
)


# Lowering


def _closed_over(uses=1):
    held = jnp.asarray(np.random.default_rng(0).normal(size=131072), jnp.float64(0).dtype)
    lowered = jax.jit(lambda x: sum(x * held[:8] * n + held.sum() for n in range(uses)))
    text = lowered.lower(jnp.asarray(X)).as_text()
    return f"{held.nbytes:,} bytes are {round(len(text), -4):,} characters of the module"


def _split():
    jax.config.update("jax_num_cpu_devices", 2)
    mesh = Mesh(np.array(jax.devices()), ("i",))
    split = NamedSharding(mesh, PartitionSpec("i"))
    text = module(lambda x: x * 2, X, in_shardings=split)
    return ", ".join(sorted(set(re.findall(r"(sdy|mhlo)\.sharding", text)))) or "none"


def _donated():
    text = module(lambda x: x * 2, X, donate_argnums=0)
    return ", ".join(re.findall(r"(tf\.aliasing_output|jax\.buffer_donor)", text)) or "none"


def _functions():
    inner = jax.jit(lambda x: jnp.sin(x) * 2)

    def function(x):
        for _ in range(20):
            x = inner(x)
        return x

    return module(function, X).count("func.func ")


def _pallas(platform):
    from jax.experimental import pallas as pl

    def kernel(x, o):
        o[...] = x[...] * 2.0

    shape = jax.ShapeDtypeStruct((128, 128), "float32")
    double = pl.pallas_call(kernel, out_shape=shape)
    text = jax.jit(double).trace(shape).lower(lowering_platforms=(platform,)).as_text()
    return ", ".join(sorted(set(re.findall(r"custom_call @([\w.$]+)", text)))) or "none"


_SQUARE = np.asarray(np.random.default_rng(0).normal(size=(8, 8)), np.float32)

rows(
    "lowering",
    {
        "closed_over": ("a closed-over array of float32", _closed_over),
        "closed_over_thrice": ("the same, used three times", lambda: _closed_over(3)),
        "jit_in_jit": ("functions in a module of 20 calls of one jitted function", _functions),
        "sharding_dialect": ("dialect of shardings in a module", _split),
        "donation": ("how a module says that an argument is donated", _donated),
        **{
            f"calls_{name}": (
                f"custom calls of `{title}` on a CPU",
                lambda function=function: called(function, _SQUARE),
            )
            for name, (title, function) in {
                "solve": ("jnp.linalg.solve", lambda a: jnp.linalg.solve(a, a)),
                "qr": ("jnp.linalg.qr", jnp.linalg.qr),
                "svd": ("jnp.linalg.svd", jnp.linalg.svd),
                "eigh": ("jnp.linalg.eigh", jnp.linalg.eigh),
                "eig": ("jnp.linalg.eig", jnp.linalg.eig),
                "cholesky": ("jnp.linalg.cholesky", jnp.linalg.cholesky),
                "expm": ("jax.scipy.linalg.expm", jax.scipy.linalg.expm),
                "fft": ("jnp.fft.fft", jnp.fft.fft),
                "top_k": ("lax.top_k", lambda a: lax.top_k(a, 3)),
                "approx_max_k": ("lax.approx_max_k", lambda a: lax.approx_max_k(a, 3)),
                "erf_inv": ("lax.erf_inv", lax.erf_inv),
                "callback": (
                    "jax.pure_callback",
                    lambda a: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((8, 8), "float32"), a),
                ),
                "print": ("jax.debug.print", lambda a: jax.debug.print("{}", a) or a),
            }.items()
        },
        **{
            f"operations_{name}": (
                f"operations of a module of `{title}`",
                lambda function=function: operations(function, _SQUARE),
            )
            for name, (title, function) in {
                "softmax": ("jax.nn.softmax", jax.nn.softmax),
                "normal": (
                    "jax.random.normal",
                    lambda a: jax.random.normal(jax.random.key(0), (8,)) + a,
                ),
                "sort": ("jnp.sort", jnp.sort),
                "take": ("jnp.take", lambda a: jnp.take(a, np.arange(3), axis=0)),
                "cumsum": ("jnp.cumsum", jnp.cumsum),
                "unique": ("jnp.unique, size=8", lambda a: jnp.unique(a, size=8)),
                "median": ("jnp.median", jnp.median),
                "convolve": ("jnp.convolve", lambda a: jnp.convolve(a[0], a[1])),
                "gradient": (
                    "gradient of a layer norm",
                    jax.grad(lambda a: ((a - a.mean()) / jnp.sqrt(a.var() + 1e-6))[0, 0]),
                ),
            }.items()
        },
    },
)


rows(
    "targets",
    {
        "pallas_tpu": ("custom call of a Pallas kernel for a TPU", lambda: _pallas("tpu")),
        "pallas_cuda": ("custom call of a Pallas kernel for a GPU", lambda: _pallas("cuda")),
    },
)


# Compiling


def _kernels(function, *arguments):
    """Return how many fusions and calls the entry of a compiled program has."""
    entry = hlo(function, *arguments).partition("ENTRY ")[2]
    kinds = re.findall(r"\} (fusion|call|custom-call|dot|reduce|sort|while)\(", entry)
    kinds += re.findall(r"\] (fusion|call|custom-call|dot|reduce|sort|while)\(", entry)
    return ", ".join(f"{n} {kind}" for kind, n in sorted(collections.Counter(kinds).items()))


def _product(dtype):
    text = hlo(lambda a: a @ a, matrix(256, dtype))
    found = re.findall(r"= (\w+)\[[\d,]*\]\S* (dot)\(|custom_call_target=\"([^\"]+)\"", text)
    return ", ".join(sorted({f"{a} {b}".strip() if b else c for a, b, c in found})) or "fused"


def _memory(field):
    def chain(a):
        for _ in range(3):
            a = jnp.tanh(a @ a)
        return a

    analysis = jax.jit(chain).lower(matrix(128)).compile().memory_analysis()
    return f"{getattr(analysis, field, 'no such field')}"


def _python_float():
    compiled = jax.jit(lambda x: x * 2).lower(jnp.float32(1)).compile()
    return f"{compiled(1.5)}"


def _option():
    lowered = jax.jit(lambda x: x * 2).lower(X)
    return str(lowered.compile({"xla_no_such_option": True}))


rows(
    "compiling",
    {
        "kernels_softmax": (
            "instructions of a compiled softmax", lambda: _kernels(jax.nn.softmax, matrix(256))),
        "kernels_gelu": (
            "instructions of a compiled GELU", lambda: _kernels(jax.nn.gelu, matrix(256))),
        "kernels_norm": (
            "instructions of a compiled layer norm",
            lambda: _kernels(
                lambda a: (a - a.mean(1, keepdims=True)) / jnp.sqrt(a.var(1, keepdims=True) + 1e-6),
                matrix(256),
            ),
        ),
        "kernels_cumsum": (
            "instructions of a compiled cumsum", lambda: _kernels(jnp.cumsum, matrix(64))),
        "kernels_attention": (
            "instructions of a compiled attention",
            lambda: _kernels(jax.nn.dot_product_attention, *[jnp.ones((2, 64, 2, 16))] * 3),
        ),
        "kernels_tanh_chain": (
            "instructions of 40 tanh in a row",
            lambda: _kernels(lambda a: [a := jnp.tanh(a) for _ in range(40)][-1], matrix(64)),
        ),
        **{
            f"product_{dtype}": (
                f"the product of two {dtype} matrices of 256 in XLA's program",
                lambda dtype=dtype: _product(dtype),
            )
            for dtype in ("float32", "float16", "bfloat16", "int8", "float8_e4m3fn")
        },
        "flops_power": ("flops of `x**3`, 1,000 numbers", lambda: cost(
            "flops", lambda x: x**3, jnp.ones(1000))),
        "flops_sort": ("flops of a sort, 1,000 numbers", lambda: cost(
            "flops", jnp.sort, jnp.ones(1000))),
        "flops_top_k": ("flops of `top_k`, 1,000 numbers", lambda: cost(
            "flops", lambda x: lax.top_k(x, 5), jnp.ones(1000))),
        "flops_tanh": ("flops of tanh, 1,000 numbers", lambda: cost(
            "flops", jnp.tanh, jnp.ones(1000))),
        "transcendentals_tanh": ("transcendentals of tanh, 1,000 numbers", lambda: cost(
            "transcendentals", jnp.tanh, jnp.ones(1000))),
        "flops_product": ("flops of a product of two matrices of 64", lambda: cost(
            "flops", lambda a: a @ a, matrix())),
        "flops_complex": ("flops of the same, complex", lambda: cost(
            "flops", lambda a: a @ a, matrix(64, "complex64"))),
        "flops_float16": ("flops of the same, float16", lambda: cost(
            "flops", lambda a: a @ a, matrix(64, "float16"))),
        "flops_scan": ("flops of 100 products in a scan", lambda: cost(
            "flops", lambda a: lax.scan(lambda c, _: (c @ a, None), a, None, 100)[0], matrix())),
        "bytes_product": ("bytes accessed by a product of two matrices of 64", lambda: cost(
            "bytes accessed", lambda a: a @ a, matrix())),
        "memory_temp": (
            "bytes of temporaries of three products of 128",
            lambda: _memory("temp_size_in_bytes")),
        "memory_peak": ("peak bytes of the same", lambda: _memory("peak_memory_in_bytes")),
        "memory_code": (
            "bytes of code of the same", lambda: _memory("generated_code_size_in_bytes")),
        "python_float": ("a compiled function is called with a Python float", _python_float),
        "unknown_option": ("an unknown compiler option", _option),
    },
)  # fmt: skip


# Exporting


def _export(function, *arguments, **options):
    from jax import export

    return export.export(jax.jit(function, **options))(*arguments)


def _again(exported):
    from jax import export

    return export.deserialize(exported.serialize())


def _size(size):
    from jax import export

    dimension = export.symbolic_shape("b")[0]
    exported = _export(lambda x: x * 2, jax.ShapeDtypeStruct((dimension,), "float32"))
    return str(_again(exported).call(np.ones(size, np.float32)).shape)


def _named(register):
    from jax import export

    pair = collections.namedtuple("Pair", "a b")
    if register:
        export.register_namedtuple_serialization(pair, serialized_name="pair")
    exported = _again(_export(lambda p: p.a + p.b, pair(X, X)))
    return str(exported.call(pair(X, X)).shape)


def _closed_over_export():
    held = jnp.asarray(np.random.default_rng(0).normal(size=250_000), jnp.float32)
    return round(len(_export(lambda x: x * held[:8] + held.sum(), X).serialize()), -5)


def _donated_export():
    exported = _again(_export(lambda x: x * 2, X, donate_argnums=0))
    x = jnp.asarray(X)
    exported.call(x)
    return "deleted" if x.is_deleted() else "not deleted"


@experiment("exporting", "an exported gradient, of order 1")
def export_gradient():
    from jax import export

    exported = _export(lambda x: jnp.sin(x).sum(), X)
    exported = export.deserialize(exported.serialize(vjp_order=1))
    return str(jax.grad(exported.call)(X).shape)


@experiment("exporting", "calling conventions that are read and written")
def export_versions():
    from jax import export

    written = _export(jnp.sin, X).calling_convention_version
    low = export.minimum_supported_calling_convention_version
    return f"{low} to {export.maximum_supported_calling_convention_version}, {written} is written"


rows(
    "exporting",
    {
        "export_zero": ("a symbolic size is called with 0", lambda: _size(0)),
        "export_three": ("a symbolic size is called with 3", lambda: _size(3)),
        "export_namedtuple": ("an argument is a namedtuple", lambda: _named(False)),
        "export_namedtuple_registered": ("the same, registered", lambda: _named(True)),
        "export_key": (
            "an argument is a typed random key",
            lambda: str(
                _again(_export(lambda k: jax.random.normal(k, (3,)), jax.random.key(0)))
                .call(jax.random.key(1)).shape
            ),
        ),
        "export_donated": ("the donated argument after an exported call", _donated_export),
        "export_vmap": (
            "vmap of an exported call",
            lambda: str(jax.vmap(_again(_export(jnp.sin, X)).call)(np.stack([X, X])).shape),
        ),
        "export_platforms": (
            "a function is exported for cpu, cuda and tpu at once",
            lambda: ", ".join(
                jax.export.export(jax.jit(jnp.sin), platforms=["cpu", "cuda", "tpu"])(X).platforms
            ),
        ),
        "export_callback": (
            "a function with `jax.debug.print` is exported",
            lambda: len(_export(lambda x: jax.debug.print("{}", x) or x, X).serialize()) > 0,
        ),
        "export_closed_over": ("bytes of an export that closes over 1 MB", _closed_over_export),
    },
)  # fmt: skip


def _read(text):
    """Return what calling an export of another release gives."""
    from jax import export

    exported = export.deserialize(bytearray(base64.b64decode(text)))
    return "reads it" if np.allclose(exported.call(X), np.tanh(X)) else "another result"


def forked(function):
    """Return what a function returns in a fork of this process, or the error that it raises."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            try:
                result = function()
            except BaseException as error:
                text = " ".join(f"{type(error).__name__}: {error}".split())
                result = text if len(text) <= SHORT else text[:SHORT].rpartition(" ")[0] + " ..."
            os.write(write, json.dumps(result).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(found) if found else "the process ended"


def main():
    """Print the installation and all results; or how exports of other releases are read."""
    if sys.argv[1:] == ["reads"]:
        exports = json.loads(sys.stdin.read())
        found = {
            release: forked(lambda text=text: _read(text)) for release, text in exports.items()
        }
    else:
        exported = forked(lambda: base64.b64encode(_export(jnp.tanh, X).serialize()).decode())
        found = {
            "jax": jax.__version__,
            "jaxlib": version("jaxlib"),
            "python": ".".join(map(str, sys.version_info[:3])),
            "exported": exported,
            "results": {name: forked(function) for name, (_, _, function) in EXPERIMENTS.items()},
        }
    print(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
