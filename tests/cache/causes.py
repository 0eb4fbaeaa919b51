"""Pairs of runs that differ in one thing, and what an expert would say of the second's miss."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.cache.explain import Explained, explain_runs
from harness.cache.ledger import Requests, read
from harness.jaxhooks import jax_names
from tests import forks
from tests.cache.filled import environment
from tools.cache_sharing import free_port
from tools.probe import bench

OLD = jax_names.version().startswith("0.10.")

UNDER_A_LEDGER = """
import runpy, sys
from harness.cache.ledger import ledger
path, *sys.argv = sys.argv[1:]
with ledger(path) as book:
    runpy.run_path(sys.argv[0], run_name="__main__")
assert not book.failures, book.failures
"""


class Runs:
    """Programs in processes of their own, each under a ledger; all share a cache, but if told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self._done: dict[object, Requests] = {}

    def __call__(
        self, program: str, *arguments: str, cache: str = "cache", **settings: str
    ) -> Requests:
        process, path = self.start(program, *arguments, cache=cache, **settings)
        done = forks.finished(process, 120)
        assert not done.returncode, done.stderr
        return read(path)

    def once(self, program: str, **settings: str) -> Requests:
        """Run a program, or return what came of it before."""
        asked = program, tuple(settings.items())
        if asked not in self._done:
            self._done[asked] = self(program, **settings)
        return self._done[asked]

    def start(
        self, program: str, *arguments: str, cache: str = "cache", **settings: str
    ) -> tuple[subprocess.Popen[str], Path]:
        """Start a program; return its process and its ledger."""
        self.count += 1
        script = self.folder / f"program_{self.count}.py"
        script.write_text(program)
        path = self.folder / f"book_{self.count}.jsonl"
        variables = environment(self.folder / cache, **settings)
        command = [sys.executable, "-c", UNDER_A_LEDGER, str(path), str(script), *arguments]
        return forks.Python(command, env=variables, **forks.SAID), path


BASE = """
import numpy as np, jax, jax.numpy as jnp
x = np.ones((4, 4), np.float32)
def f(x): return {'a': x @ x + 2.5}
jax.jit(f)(x)
"""
LARGE = """
import numpy as np, jax
weights = np.arange(400_000, dtype=np.float32)
def f(x): return x + weights
jax.jit(f)(weights)
"""
TWO_SHAPES = """
import numpy as np, jax
def f(x): return x @ x
jax.jit(f)(np.ones((4, 4), np.float32))
jax.jit(f)(np.ones((6, 6), np.float32))
"""
POWER = """
import numpy as np, jax
def f(x, n): return x * n
jax.jit(f, static_argnums=1)(np.ones((4, 4), np.float32), 2)
"""
LAYERS = """
import numpy as np, jax, jax.numpy as jnp
def f(x):
    for _ in range(2):
        x = jnp.tanh(x)
    return x
jax.jit(f)(np.ones((4, 4), np.float32))
"""
RANDOM = """
import jax
def f(seed):
    a, b = jax.random.split(jax.random.key(seed))
    return jax.random.normal(a, (4,)) + jax.random.uniform(b, (4,))
jax.jit(f)(0)
"""
KEYS = """
import jax
def f(key): return jax.random.uniform(key, (4,))
jax.jit(f)(jax.random.key(0))
"""
SAME_OTHERWISE = "the same operations in another order,"
OF_A_SET = """
import jax, jax.numpy as jnp
names = {"alpha", "beta", "gamma", "delta", "eps", "zeta"}
def f(p):
    t = 0.0
    for n in names: t = t + jnp.sum(jnp.sin(p[n]) * p[n].shape[0])
    return t
jax.jit(f)({n: jnp.ones(len(n) + 1) for n in names})
"""
PARTITIONED = """
import os, jax, numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
spare = [bytearray(n) for n in range(int.from_bytes(os.urandom(2)) // 10)]
@custom_partitioning
def twice(x): return x * 2.0
def infer(mesh, given, result): return given[0].sharding
def part(mesh, given, result):
    return mesh, (lambda x: x * 2.0), given[0].sharding, (given[0].sharding,)
twice.def_partition(
    infer_sharding_from_operands=infer, partition=part, sharding_rule="i j -> i j"
)
mesh = Mesh(np.array(jax.devices()), ("d",))
x = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("d", None)))
def f(x): return jax.numpy.tanh(twice(x) + 1)
jax.jit(f)(x)
"""
REMAT = """
import numpy as np, jax, jax.numpy as jnp
def layer(x): return jnp.sin(jnp.sin(x @ x) @ x)
def f(x): return jax.grad(lambda x: layer(layer(x)).sum())(x)
jax.jit(f)(np.ones((4, 4), np.float32))
"""
SHARDED = """
import numpy as np, jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()[:2]), ('x',))
def own(*axes): return NamedSharding(mesh, P(*axes))
def f(x): return x @ x + 2.5
jax.jit(f, in_shardings=own('x'), out_shardings=own('x'))(np.ones((4, 4), np.float32))
"""
COMMITTED = BASE.replace("(f)(x)", "(f)(jax.device_put(x, jax.devices()[0]))")
TWO = """
import numpy as np, jax, jax.numpy as jnp
x = np.ones((4, 4), np.float32)
def f(x): return x @ x
def g(x): return jnp.sort(x)
jax.jit(f)(x)
jax.jit(g)(x)
"""
CALLBACK = BASE.replace("x @ x + 2.5", "jax.pure_callback(lambda y: y, x, x)")
LAYOUT = """
import numpy as np, jax
from jax.experimental.layout import Format, Layout
from jax.sharding import SingleDeviceSharding
one = SingleDeviceSharding(jax.devices()[0])
def f(x): return x @ x
shape = jax.ShapeDtypeStruct((4, 4), np.float32)
jax.jit(f, in_shardings=Format(Layout((1, 0)), one)).lower(shape).compile()
"""
ALL = {"JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "all"}
FOUR = {"JAX_NUM_CPU_DEVICES": "4"}
ZSTANDARD = """
import types, zlib
from jax._src import compilation_cache
both = types.SimpleNamespace(compress=zlib.compress, decompress=zlib.decompress)
compilation_cache.zstandard = types.SimpleNamespace(
    ZstdCompressor=lambda: both, ZstdDecompressor=lambda: both
)
"""
UPGRADED = "from jax._src import cache_key; cache_key.jaxlib_version_str = '9.9.9'\n"
HOOKED = "from jax._src import cache_key; cache_key.custom_hook = lambda: 'mine'\n"
PRECISE = "import jax; jax.config.update('jax_default_matmul_precision', 'highest')\n"
FOREIGN = """
import types, zlib
from jax._src.lib import xla_client
ours = xla_client.get_topology_for_devices
def another(devices):
    told = getattr(ours(devices), "serialize", lambda: b"another")()
    said = told.replace(b"+avx2", b"-avx2")
    return types.SimpleNamespace(serialize=lambda: said, fingerprint=lambda: zlib.crc32(said))
xla_client.get_topology_for_devices = another
"""
LOCATED = {"JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY": "1"}
DISTRIBUTED = """
import sys, jax
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
"""


def of(component: str, cause: str) -> str:
    """Return the verdict on a key of which one component, or more, changed."""
    return rf"`{component.replace('+', '` and `')}` changed, the rest is equal: {cause}\."


def options(cause: str) -> str:
    """Return the verdict on other compile options, whatever else is said."""
    return rf"`compile_options` changed, the rest is equal: .*{cause}.*"


def computation(cause: str) -> str:
    """Return the verdict on another computation."""
    return of("computation", cause)


HIT = r"The key is equal, and the cache answered\."
SHARDING = r"the sharding of an argument or result \(committed or not, another device or mesh\)"


Make = Callable[[Runs], tuple[Requests, Requests]]


@dataclass(frozen=True)
class Case:
    """Two runs that differ in one thing.

    Attributes:
        name: What differs.
        expected: What the verdict must be, as a regular expression for all of it.
        change: What is replaced in the first program for the second.
        program: The first.
        before: Variables of both runs.
        after: More of them, of the second run.
        arguments: Of the second run.
        old: What is expected up to jax 0.10.2, if that is something else.
        make: How the two runs come about, if they are more than two processes with one cache.
    """

    name: str
    expected: str
    change: tuple[str, str] = ("", "")
    program: str = BASE
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    old: str = ""
    make: Make | None = None

    def explained(self, runs: Runs) -> Explained:
        """Do both runs, and return what is said of the function `f`."""
        a, b = self.make(runs) if self.make else self._pair(runs)
        every = explain_runs(a, b)
        found = [one for name in "fg" for one in every if one.module == f"jit_{name}"]
        return next((one for one in found if not one.hit), found[0])

    def _pair(self, runs: Runs) -> tuple[Requests, Requests]:
        assert self.change[0] in self.program
        program = self.program.replace(*self.change, 1)
        a = runs.once(self.program, **self.before)
        return a, runs(program, *self.arguments, **{**self.before, **self.after})


def _with(place: str, between: Callable[[Path], object], **after: str) -> Make:
    """Do something to a cache of its own between two runs."""

    def make(runs: Runs) -> tuple[Requests, Requests]:
        before = {name: text for name, text in after.items() if name != "cache"}
        a = runs(BASE, cache=place, **before)
        between(runs.folder / place)
        return a, runs(BASE, **{"cache": place, **after})

    return make


def _twice(cache: str, **settings: str) -> Make:
    """Run a program twice with a cache of its own."""
    return _with(cache, lambda place: None, cache=cache, **settings)


def _entry(cache: Path) -> Path:
    [found] = cache.glob("jit_f-*-cache")
    return found


def _read_only(runs: Runs) -> tuple[Requests, Requests]:
    cache = runs.folder / "read_only"
    cache.mkdir()
    with bench.read_only(cache):
        return runs(BASE, cache="read_only"), runs(BASE, cache="read_only")


ONE_F, ONE_G = TWO.replace("jax.jit(g)(x)", ""), TWO.replace("jax.jit(f)(x)", "")


def _evicted(cache: str, first: str, second: str, between: str = "") -> Make:
    """Run programs under a size cap that one entry of two fits in."""

    def make(runs: Runs) -> tuple[Requests, Requests]:
        both = sum(event.entry_bytes for event in runs.once(TWO, cache="two").events)
        settings = {"cache": cache, "JAX_COMPILATION_CACHE_MAX_SIZE": str(both * 3 // 4)}
        a = runs(first, **settings)
        if between:
            runs(between, **settings)
        return a, runs(second, **settings)

    return make


def _processes(runs: Runs) -> tuple[Requests, Requests]:
    address = f"localhost:{free_port()}"
    started = [runs.start(DISTRIBUTED + BASE, address, number) for number in "01"]
    for process, _ in started:
        done = forks.finished(process, 120)
        assert not done.returncode, done.stderr
    a, b = (read(path) for _, path in started)
    return a, b


def _file_in_its_place(cache: Path) -> None:
    cache.rename(cache.with_name("kept"))
    cache.write_text("")


def _link(cache: Path) -> None:
    cache.with_name("link").symlink_to(cache.name)


def _flags(*flags: str) -> dict[str, str]:
    return {"XLA_FLAGS": " ".join(flags)}


FAST, LIBM = "--xla_cpu_enable_fast_math=true", "--xla_cpu_enable_fast_min_max=true"

CASES = (
    # The program
    Case("nothing", HIT),
    Case("a comment above", HIT, ("import", "# a comment\nimport")),
    Case("name of an argument", HIT, ("f(x): return {'a': x @ x", "f(y): return {'a': y @ y")),
    Case("constant", computation("a constant's value"), ("2.5", "2.75")),
    Case(
        "constant in an array",
        computation("a constant's value"),
        ("3, 1, 4, 1", "3, 1, 4, 2"),
        program=BASE.replace("2.5", "np.array([3, 1, 4, 1], np.float32)"),
    ),
    Case(
        "constant too large to be kept",
        computation("a constant too large to be stored in the recording changed"),
        ("def f", "weights[7] = 0\ndef f"),
        program=LARGE,
    ),
    Case("shape", computation(r"shapes .*4x4xf32> became tensor<2x2xf32>"), ("4, 4", "2, 2")),
    Case("one of two shapes", computation(r"shapes .*6x6xf32> became tensor<8x8xf32>"),
         ("6, 6", "8, 8"), program=TWO_SHAPES),
    Case("dtype", computation(r"shapes .*xf32> became tensor<4x4xf16>"), ("float32", "float16")),
    Case("number of arguments", of("computation+compile_options",
         r"shapes .*xf32> became tensor<4x4xf32>, tensor<4x4xf32>"),
         ("f(x): return {'a': x @ x + 2.5}\njax.jit(f)(x)",
          "f(x, y): return {'a': x @ y + 2.5}\njax.jit(f)(x, x)")),
    Case("two things", computation("donation of an argument; a constant's value"),
         ("+ 2.5}\njax.jit(f)", "+ 2.75}\njax.jit(f, donate_argnums=0)")),
    Case("layout of an argument", computation("layouts of arguments or results"),
         ("(1, 0)", "(0, 1)"), program=LAYOUT),
    Case("unrolled loop", of("computation+compile_options", "the operations of the program"),
         ("x, x)", "x, x, unroll=True)"), program=BASE.replace(
         "x @ x", "jax.lax.fori_loop(0, 3, lambda i, y: y @ x, x)"),
         old=computation("the operations of the program")),
    Case("partitioner", r".*jax_use_shardy_partitioner was True, is False.*",
         program=SHARDED, before=FOUR, after={"JAX_USE_SHARDY_PARTITIONER": "0"}),
    Case("dtype inside", computation("the operations of the program"),
         ("x @ x", "(x.astype(jnp.float16) @ x).astype(x.dtype)")),
    Case("operation", computation("the operations of the program"), ("x @ x", "x * x")),
    Case("number of layers", computation("the operations of the program"), ("(2)", "(3)"),
         program=LAYERS),
    Case("loop's length", computation("a constant's value"), ("0, 3", "0, 4"),
         program=BASE.replace("x @ x", "jax.lax.fori_loop(0, 3, lambda i, y: y @ x, x)")),
    Case("order of a sum", computation(f"{SAME_OTHERWISE} .*"),
         ("(x[0] + x[1]) + x[2]", "x[0] + (x[1] + x[2])"),
         program=BASE.replace("x @ x", "((x[0] + x[1]) + x[2])")),
    Case("iteration over a set", computation(f"{SAME_OTHERWISE} .*PYTHONHASHSEED=0.*"),
         program=OF_A_SET, before={"PYTHONHASHSEED": "1"}, after={"PYTHONHASHSEED": "2"}),
    Case("iteration over a set of layers", computation(f"{SAME_OTHERWISE} .*PYTHONHASHSEED=0.*"),
         program=OF_A_SET.replace("jnp.sin(p[n]) * p[n].shape[0]", "jnp.tanh(p[n])"),
         before={"PYTHONHASHSEED": "1"}, after={"PYTHONHASHSEED": "2"}),
    Case("a Python id", computation("a Python id or an address in the program, .*"),
         # A forked process would otherwise have its objects where the one before had them.
         program="import os\nkept = [object() for _ in range(int(os.environ.get('OBJECTS', 0)))]\n"
         + PARTITIONED, before=FOUR, after={**FOUR, "OBJECTS": "300000"}),
    Case("a typed key", computation(r"the kind of a random key, a typed key .* became a raw .*"),
         ("jax.random.key(0)", "jax.random.PRNGKey(0)"), program=KEYS),
    Case("a raw key", computation(r"the kind of a random key, a raw key .* became a typed .*"),
         ("PRNGKey", "key"), program=KEYS.replace(".key", ".PRNGKey")),
    Case("typed keys", computation(r"the kind of a random key, a typed key .* became a raw .*"),
         ("key(0)", "PRNGKey(0)"), program=KEYS.replace("jax.random.uniform(key, (4,))",
         "jax.vmap(jax.random.uniform)(key)").replace("jax.random.key(0)",
         "jax.random.split(jax.random.key(0))")),
    Case("axis of a sum", computation("the dimensions that an operation goes over"),
         ("sum(0)", "sum(1)"), program=BASE.replace("x @ x", "x.sum(0)")),
    Case("static value", computation("a constant's value"), (", 2)", ", 3)"), program=POWER),
    Case("name of the function", computation("the function was renamed"),
         ("f(x): return {'a': x @ x + 2.5}\njax.jit(f)",
          "g(x): return {'a': x @ x + 2.5}\njax.jit(g)")),
    Case("key of the output", computation(r"the output pytree has other keys .*"),
         ("'a'", "'b'")),
    Case("structure of the output", computation(r"the output pytree has other keys .*"),
         ("{'a': x @ x + 2.5}", "(x @ x + 2.5,)")),
    Case("donation", computation("donation of an argument"), ("(f)", "(f, donate_argnums=0)")),
    Case("matmul precision of one operation", computation("matmul precision"),
         ("x @ x", "jnp.matmul(x, x, precision='highest')")),
    Case("matmul precision of all", computation(
         "matmul precision; jax_default_matmul_precision was None, is highest"),
         ("import", PRECISE + "import")),
    Case("x64 of an argument", computation(
         r"shapes .*4x4xf32> became tensor<4x4xf64>; jax_enable_x64 was False, is True"),
         program=BASE.replace("np.float32", "np.float64"), after={"JAX_ENABLE_X64": "1"}),
    Case("x64 inside", computation(
         "the operations of the program; jax_enable_x64 was False, is True"),
         program=BASE.replace("x @ x", "x @ x + jnp.arange(4.0).sum()"),
         after={"JAX_ENABLE_X64": "1"}),
    Case("PRNG by a setting", computation(
         r"how random numbers are made \(PRNG\), .*; jax_default_prng_impl was threefry2x32, is rbg"
         ), program=RANDOM, after={"JAX_DEFAULT_PRNG_IMPL": "rbg"}),
    Case("PRNG in the program", computation(r"how random numbers are made \(PRNG\), .*"),
         ("key(seed)", "key(seed, impl='unsafe_rbg')"), program=RANDOM),
    Case("PRNG of a key that is given", computation(r"how random numbers are made \(PRNG\), .*"),
         ("key(0)", "key(0, impl='rbg')"), program=KEYS),
    Case("jax_threefry_partitionable", computation(
         r".*jax_threefry_partitionable was True, is False"),
         program=RANDOM, after={"JAX_THREEFRY_PARTITIONABLE": "0"}),
    Case("rematerialisation", computation("rematerialisation .*"),
         ("layer(layer(x))", "jax.checkpoint(layer)(layer(x))"), program=REMAT),
    Case("policy of rematerialisation", computation("rematerialisation .*"),
         ("(layer)", "(layer, policy=jax.checkpoint_policies.dots_saveable)"),
         program=REMAT.replace("layer(layer(x))", "jax.checkpoint(layer)(layer(x))")),
    Case("library call", computation(
         "the library that is called, lapack_spotrf_ffi became lapack_s.*"),
         ("cholesky(x)", "eigh(x)[1]"), program=BASE.replace("x @ x", "jnp.linalg.cholesky(x)")),
    Case("metadata in the key", computation(r"source locations are in the key .*"),
         after=LOCATED),
    Case("a line moved, with metadata in the key", computation(
         r"source locations are in the key .*"), ("import", "# a comment\nimport"),
         before=LOCATED),
    # Devices
    Case("committed argument", of("computation+compile_options", f"{SHARDING}; XLA may not .*"),
         ("(f)(x)", "(f)(jax.device_put(x, jax.devices()[0]))")),
    Case("partition of an argument", computation(SHARDING), ("in_shardings=own('x')",
         "in_shardings=own(None, 'x')"), program=SHARDED, before=FOUR),
    Case("partition of a result", computation(SHARDING), ("out_shardings=own('x')",
         "out_shardings=own(None, 'x')"), program=SHARDED, before=FOUR),
    Case("constraint inside", computation(r"the sharding of a value inside .*"), ("x @ x",
         "jax.lax.with_sharding_constraint(x @ x, own(None, 'x'))"), program=SHARDED, before=FOUR),
    Case("name of a mesh axis", computation(SHARDING), ("""('x',))
def own(*axes): return NamedSharding(mesh, P(*axes))""", """('y',))
def own(*axes): return NamedSharding(mesh, P(*('y' if a else a for a in axes)))"""),
         program=SHARDED, before=FOUR),
    Case("size of the mesh", of("computation+compile_options", rf"{SHARDING}.*partitions.*"),
         ("[:2]", "[:4]"), program=SHARDED, before=FOUR),
    Case("order of the mesh", options("the devices that it runs on"), ("[:2]", "[1::-1]"),
         program=SHARDED, before=FOUR),
    Case("another device", options("the devices that it runs on"),
         ("devices()[0]", "devices()[1]"), program=COMMITTED, before=FOUR),
    Case("number of devices", of("accelerator_config",
         "the devices of the process, 1 cpu became 2 cpu"), after={"JAX_NUM_CPU_DEVICES": "2"}),
    Case("another process of one run", r".*process of the run, 0 became 1.*", make=_processes),
    Case("another processor", of("accelerator_config", "the processor's features, without avx2"),
         ("import", FOREIGN + "import"), old=of("accelerator_config", "what XLA sees of .*")),
    # Options and flags
    Case("XLA flag", of("xla_flags+compile_options", f"flag {FAST} was added"),
         after=_flags(FAST)),
    Case("value of a flag", of("xla_flags+compile_options",
         f"flag {FAST} was removed; flag {FAST[:-4]}false was added"),
         before=_flags(FAST), after=_flags(FAST[:-4] + "false")),
    Case("order of flags", HIT, before=_flags(FAST, LIBM), after=_flags(LIBM, FAST)),
    Case("flag that changes no program", HIT, after=_flags("--xla_dump_max_hlo_modules=7")),
    Case("instructions that may be used", r".*flag --xla_cpu_max_isa=SSE4_2 was added.*",
         after=_flags("--xla_cpu_max_isa=SSE4_2")),
    Case("argument of the program", of("xla_flags", "flag --xla_own=1 was added"),
         arguments=("--xla_own=1",)),
    Case("compiler option of jax.jit", options("xla_cpu_enable_fast_math"),
         ("jit(f)", "jit(f, compiler_options={'xla_cpu_enable_fast_math': True})")),
    Case("jax_disable_most_optimizations", options(
         "jax_disable_most_optimizations was False, is True"),
         after={"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}),
    # Releases and libraries
    Case("upgrade of jaxlib", r"jaxlib [\d.]+ became 9\.9\.9: every key is another one\.",
         ("import", UPGRADED + "import")),
    Case("zstandard installed", of("compression", "zlib became zstandard"),
         ("import", ZSTANDARD + "import")),
    Case("custom hook", r"`custom_hook` changed, the rest is equal.*",
         ("import", HOOKED + "import")),
    # The cache
    Case("host callback", HIT, program=CALLBACK,
         old=r"The key is equal; the first run wrote no entry: host callback\."),
    Case("no directory",
         r"(The key is equal\. )?The second run had no cache to ask: no directory .*",
         after={"JAX_COMPILATION_CACHE_DIR": ""}),
    Case("disabled", r"The second run had no cache to ask: disabled .*",
         after={"JAX_ENABLE_COMPILATION_CACHE": "0"}),
    Case("disabled before", r"The first run had no cache to ask: disabled .*",
         before={"JAX_ENABLE_COMPILATION_CACHE": "0"}, after={"JAX_ENABLE_COMPILATION_CACHE": "1"}),
    Case("directory moved", HIT, old=options("the cache's directory was moved"),
         make=_with("here", lambda cache: cache.rename(cache.with_name("there")), cache="there")),
    Case("directory reached by a link", HIT,
         old=options("the cache's directory is named by another path"),
         make=_with("linked", _link, cache="link")),
    Case("XLA's own caches", HIT,
         old=options("jax_persistent_cache_enable_xla_caches changed"),
         after={"JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none"}),
    Case("moved, with all of XLA's own caches", options("the cache's directory was moved"),
         make=_with("all", lambda cache: cache.rename(cache.with_name("all there")),
                    cache="all there", **ALL)),
    Case("another directory", r"The key is equal; the runs used two directories, .*",
         old=options("the cache's directory was moved"),
         make=_with("one", lambda cache: None, cache="other")),
    Case("time threshold", r"The key is equal; the first run wrote no entry: below the time .*",
         make=_twice("timed", JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="1")),
    Case("size threshold", r"The key is equal; the first run wrote no entry: below the size .*",
         make=_twice("sized", JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="1000000")),
    Case("larger than the cap", r"The key is equal; the first run wrote no entry: over the size .*",
         make=_twice("capped", JAX_COMPILATION_CACHE_MAX_SIZE="10")),
    Case("read-only directory", r"The key is equal; the first run wrote no entry: error .*",
         make=_read_only),
    Case("evicted by the first run", r"The key is equal and .* gone: the first run evicted it, "
         r"to make room for jit_g under its cap\.", make=_evicted("evicted", TWO, TWO)),
    Case("evicted by the second run", r"The key is equal and .* gone: the second run evicted it, "
         r"to make room for jit_g under its cap\.",
         make=_evicted("evicting", ONE_F, ONE_G + "jax.jit(f)(x)")),
    Case("evicted by a third run", r"The key is equal and .* gone: evicted by another program, "
         r"or removed; neither run evicted it\.", make=_evicted("third", ONE_F, ONE_F, ONE_G)),
    Case("removed", r"The key is equal and .* gone: removed, or evicted by another program; "
         r"neither run has a size cap\.",
         make=_with("removed", lambda cache: _entry(cache).unlink())),
    Case("torn entry", r"The key is equal; the entry could not be read: .*",
         make=_with("torn", lambda cache: _entry(cache).write_bytes(b"torn"))),
    Case("a file in the directory's place",
         r"(The key is equal\. )?The second run had no cache to ask: unusable directory .*",
         make=_with("file", _file_in_its_place)),
)  # fmt: skip
