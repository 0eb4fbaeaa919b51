"""Healthy cache directories of many kinds, filled by real JAX: no check is to find a problem."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests import forks
from tests.cache.filled import CAP, START, backdate, environment

FOUR = {"JAX_NUM_CPU_DEVICES": "4"}
CAPPED = {"JAX_COMPILATION_CACHE_MAX_SIZE": str(CAP)}
ALL = {"JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "all"}

THREE = "for function in (first, second, third): jax.jit(function)(x)"

PYARROW_ZSTD = """
import types, pyarrow
from jax._src import compilation_cache
pack = types.SimpleNamespace(compress=lambda data: pyarrow.compress(data, "zstd", asbytes=True))
compilation_cache.zstandard = types.SimpleNamespace(ZstdCompressor=lambda: pack)
"""


def fill(cache: Path, program: str, python: str = sys.executable, **settings: str) -> None:
    """Run a program with a cache, in a process of its own and with the JAX of a Python."""
    variables = environment(cache, **settings)
    command = [python, "-c", START + program]
    if python == sys.executable:
        forks.run(command, env=variables, check=True)
    else:
        variables.pop("PYTHONPATH", None)
        subprocess.run(command, env=variables, check=True, capture_output=True)


@dataclass(frozen=True)
class Healthy:
    """One kind of directory.

    Attributes:
        name: What is special in it.
        program: What fills it, after `START`.
        settings: Variables of that process.
        then: What is done to it afterwards; it may return another directory to look at.
    """

    name: str
    program: str = THREE
    settings: dict[str, str] = field(default_factory=dict)
    then: Callable[[Path], object] = lambda cache: None

    def make(self, folder: Path) -> Path:
        """Fill one in a folder; return where it is."""
        cache = folder / "cache"
        fill(cache, self.program, **self.settings)
        if not cache.exists():  # a program that compiles nothing makes no directory
            cache.mkdir()
        backdate(cache)
        place = self.then(cache)
        return place if isinstance(place, Path) else cache


def _each(*lines: str) -> str:
    return "\n".join(f"jax.jit(lambda x: {line})(x)" for line in lines)


def _named(*names: str) -> str:
    return f"""
for name in {names!r}:
    def f(x): return x @ x
    f.__name__ = name
    jax.jit(f)(x)
"""


def _each_file(change: Callable[[Path], object], files: str = "*") -> Callable[[Path], None]:
    def then(cache: Path) -> None:
        for path in [*cache.glob(files)]:
            change(path)

    return then


def _again(program: str, **settings: str) -> Callable[[Path], None]:
    def then(cache: Path) -> None:
        fill(cache, program, **settings)
        backdate(cache)

    return then


def _linked(cache: Path) -> Path:
    (link := cache.with_name("link")).symlink_to(cache)
    return link


def _copied(cache: Path) -> Path:
    return shutil.copytree(cache, cache.with_name("copy"), copy_function=shutil.copyfile)


def _entries_linked(cache: Path) -> None:
    store = cache.with_name("store")
    store.mkdir()
    for entry in [*cache.iterdir()]:
        shutil.move(entry, store)
        entry.symlink_to(store / entry.name)


def _strangers(cache: Path) -> None:
    for name in ("pip-cache", "build-cache", "README.md", ".DS_Store", "jit_f-cache", "x-atime"):
        (cache / name).write_bytes(b"mine" if "." in name else b"")
    (cache / "notes").mkdir()
    (cache / "notes" / f"jit_f-{'0' * 64}-cache").write_bytes(b"")
    (cache / "tool-cache").mkdir()


def _many(cache: Path) -> None:
    for entry in [*cache.glob("*-cache")]:
        module = entry.name.removesuffix("-cache")[:-65]
        for number in range(300):
            shutil.copy2(entry, cache / f"{module}-{number:064x}-cache")


def _archived(cache: Path) -> Path:
    archive = shutil.make_archive(str(cache), "gztar", cache)
    place = cache.with_name("unpacked")
    shutil.unpack_archive(archive, place, filter="data")
    return place


def _quarantined_before(cache: Path) -> None:
    folder = cache / "quarantine-20260101T000000Z"
    folder.mkdir()
    (folder / f"jit_f-{'0' * 64}-cache").write_bytes(b"bad")


def _restored(cache: Path) -> Path:
    place = shutil.copytree(cache, cache.with_name("restored"), copy_function=shutil.copyfile)
    for path in place.iterdir():
        os.utime(path)
    return place


def _backed_up(cache: Path) -> None:
    place = cache.with_name("backup")
    place.mkdir()
    for entry in cache.iterdir():
        os.link(entry, place / entry.name)


FAST = "--xla_cpu_enable_fast_math=true"
PARTITIONED = """
from jax.experimental.custom_partitioning import custom_partitioning
@custom_partitioning
def twice(x): return x * 2
def partition(mesh, given, result):
    return mesh, lambda x: x * 2, given[0].sharding, (given[0].sharding,)
twice.def_partition(partition=partition, sharding_rule="i j -> i j",
                    infer_sharding_from_operands=lambda mesh, given, result: given[0].sharding)
mesh = Mesh(np.array(jax.devices()), ('x',))
jax.jit(lambda x: twice(x) + 1, in_shardings=NamedSharding(mesh, P('x')))(x)
"""
MESH = """
mesh = Mesh(np.array(jax.devices()), ('x',))
jax.jit(lambda x: x @ x + 1, in_shardings=NamedSharding(mesh, P('x')))(x)
jax.jit(lambda x: (x * 2).sum(), in_shardings=NamedSharding(mesh, P('x')))(x)
"""
THREADS = """
def work(number): jax.jit(lambda x: x @ x + number)(x)
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
FOR = """
from harness.targets import registry, topologies
target = registry.find({!r})
os.environ.update(target.environment)
place = topologies.describe(target.name, target.description)
shape = jax.ShapeDtypeStruct((8, 8), np.float32, sharding=place.one)
for function in (first, second, third): jax.jit(function).lower(shape).compile()
"""

KINDS = (
    Healthy("plain"),
    Healthy("with a size cap", settings=CAPPED),
    Healthy("without a cap, then with one", then=_again(THREE, **CAPPED)),
    Healthy("with a cap, then without", settings=CAPPED, then=_again(_each("x * 3"))),
    Healthy("one program of three with a cap", then=_again("jax.jit(first)(x)", **CAPPED)),
    Healthy("entries evicted", THREADS, {"JAX_COMPILATION_CACHE_MAX_SIZE": "12000"}),
    Healthy("times of use lost", settings=CAPPED, then=_each_file(Path.unlink, "*-atime")),
    Healthy("a time of use lost", settings=CAPPED, then=_each_file(Path.unlink, "jit_f*-atime")),
    Healthy("an entry removed", settings=CAPPED, then=_each_file(Path.unlink, "jit_f*-cache")),
    Healthy("XLA's own caches", settings=ALL),
    Healthy("XLA's own caches and a cap", settings={**ALL, **CAPPED}),
    Healthy("zstd", PYARROW_ZSTD + THREE),
    Healthy("zlib and zstd", then=_again(PYARROW_ZSTD + THREE)),
    Healthy("zstd and a cap", PYARROW_ZSTD + THREE, CAPPED),
    Healthy("empty", ""),
    Healthy("many entries", then=_many),
    Healthy("files of others", then=_strangers),
    Healthy("reached by a link", then=_linked),
    Healthy("entries are links", then=_entries_linked),
    Healthy("copied", then=_copied),
    Healthy("copied, with a cap", settings=CAPPED, then=_copied),
    Healthy("archived and unpacked", then=_archived),
    Healthy("renamed", then=lambda cache: cache.rename(
        cache.with_name("a name with 'quotes' and ünïcode"))),
    Healthy("quarantined before", then=_quarantined_before),
    Healthy("used long ago", then=_each_file(lambda path: os.utime(path, (0, 0)))),
    Healthy("a clock 30 s ahead", then=_each_file(
        lambda path: os.utime(path, (time.time() + 30,) * 2))),
    Healthy("below a sticky folder", then=lambda cache: cache.parent.chmod(0o1777)),
    Healthy("odd names", _named("a-b", "näme", "x.y", "<lambda>", "f" * 90, "a b", "a/b", "-cache",
                                "jit_f", "0" * 64, "f-" + "0" * 64, "函数", "a@b", "f'", 'f"')),
    Healthy("lambdas, partial and nested", """
jax.jit(functools.partial(lambda x, n: x * n, n=2))(x)
jax.jit(jax.vmap(lambda x: jax.jit(first)(jnp.outer(x, x))))(x)
jax.jit(jax.grad(first))(x)
"""),
    Healthy("four devices", MESH, FOUR),
    Healthy("four devices and a cap", MESH, {**FOUR, **CAPPED}),
    Healthy("one device, then four", then=_again(MESH, **FOUR)),
    Healthy("threads", THREADS),
    Healthy("linear algebra", _each(
        "jnp.linalg.cholesky(x + 9 * jnp.eye(8))", "jnp.linalg.qr(x)[0]", "jnp.linalg.svd(x)[1]",
        "jnp.linalg.eigh(x)[0]", "jnp.fft.fft(x)", "jnp.linalg.solve(x + 9 * jnp.eye(8), x)")),
    Healthy("random numbers and loops", _each(
        "jax.random.normal(jax.random.key(0), (4,))",
        "jax.lax.fori_loop(0, 9, lambda i, x: x @ x, x)",
        "jax.lax.scan(lambda c, y: (c + y, c), x[0], x)[1]",
        "jax.lax.cond(x[0, 0] > 0, first, first, x)")),
    Healthy("dtypes", _each(*(f"x.astype('{d}') * 2" for d in (
        "bfloat16", "float16", "int8", "complex64", "bool", "float8_e4m3fn")))),
    Healthy("64 bits", THREE, {"JAX_ENABLE_X64": "1"}),
    Healthy("a large constant", "w = np.arange(1e6, dtype='f')\njax.jit(lambda x: x.sum() + w)(x)"),
    Healthy("callbacks", "jax.jit(lambda x: jax.pure_callback(lambda y: y, x, x))(x)\n" + THREE),
    Healthy("compiled ahead, with options", """
jax.jit(first).lower(x).compile({"xla_cpu_enable_fast_math": True})
jax.jit(second, donate_argnums=0).lower(x).compile()
"""),
    Healthy("metadata in the key", THREE, {"JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY": "1"}),
    Healthy("a processor with less", THREE, {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}),
    Healthy("restored with fresh times", then=_restored),
    Healthy("two sets of flags", then=_again(THREE, XLA_FLAGS=FAST)),
    Healthy("a flag with its default value", then=_again(THREE, XLA_FLAGS=FAST[:-4] + "false")),
    Healthy("two sets of flags and a cap", settings=CAPPED,
            then=_again(THREE, XLA_FLAGS=FAST, **CAPPED)),
    Healthy("read-only on purpose", then=_each_file(lambda path: path.chmod(0o444))),
    Healthy("directory without write permission", then=lambda cache: cache.chmod(0o555)),
    Healthy("a group of its own", then=lambda cache: cache.chmod(0o2755)),
    Healthy("entries removed by hand", THREADS, then=_each_file(Path.unlink, "*[0-7]-cache")),
    Healthy("hard links to a backup", then=_backed_up),
    Healthy("half of a copy by a tool", then=lambda cache: (cache / ".jit_f.x7").write_bytes(b"")),
    Healthy("64 bits and 32", then=_again(THREE, JAX_ENABLE_X64="1")),
    Healthy("two precisions", then=_again(THREE, JAX_DEFAULT_MATMUL_PRECISION="highest")),
    Healthy("NaNs looked for", THREE, {"JAX_DEBUG_NANS": "1"}),
    Healthy("seeds of hashes", then=_again(THREE, PYTHONHASHSEED="7")),
    Healthy("many arguments", "jax.jit(lambda xs: sum(xs))([x] * 300)"),
    Healthy("custom partitioning", PARTITIONED, FOUR, _again(PARTITIONED, **FOUR)),
    Healthy("a killed program, then another", "jax.jit(first)(x)\nos.kill(os.getppid(), 0)",
            then=_again(THREE)),
    Healthy("for a GPU", FOR.format("gpu:h200") + THREE),
    Healthy("for a TPU", FOR.format("tpu:v5e") + THREE),
)  # fmt: skip


@contextlib.contextmanager
def being_written(cache: Path, program: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """Have a process write to a cache as long as it lasts."""
    writer = forks.Python(
        [sys.executable, "-c", START + program],
        env=environment(cache, **settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield writer
    finally:
        writer.kill()
        writer.wait()
