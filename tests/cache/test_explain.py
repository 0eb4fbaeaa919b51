from __future__ import annotations

import os
import re
import sys
from dataclasses import replace

import pytest

from harness.cache import stablehlo_difference as stablehlo
from harness.cache.explain import explain_runs
from harness.cache.ledger import LedgerError, read
from harness.watch import jax_names
from harness.watch.ledger_events import Component, Parts, Requests
from tests import forks
from tests.cache.filled import run_harness

OLD = jax_names.version().startswith("0.10.")

BASE = """
import numpy as np, jax
x = np.ones((4, 4), np.float32)
def f(x): return {'a': x @ x + 2.5}
jax.jit(f)(x)
"""
ZSTANDARD = """
import types, zlib
from jax._src import compilation_cache
both = types.SimpleNamespace(compress=zlib.compress, decompress=zlib.decompress)
compilation_cache.zstandard = types.SimpleNamespace(
    ZstdCompressor=lambda: both, ZstdDecompressor=lambda: both
)
"""
PRECISION = "import jax; jax.config.update('jax_default_matmul_precision', 'highest')\n"
UNDER_A_LEDGER = """
import runpy, sys
from harness.cache.ledger import ledger
path, *sys.argv = sys.argv[1:]
with ledger(path):
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
LOCATED = {"JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY": "1"}


class Runs:
    """Programs in processes of their own, each under a ledger, with one cache."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def __call__(self, program, *arguments, cache="cache", **environment):
        self.count += 1
        script = self.folder / f"program_{self.count}.py"
        script.write_text(program)
        path = self.folder / f"book_{self.count}.jsonl"
        settings = {
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            **environment,
        }
        command = [sys.executable, "-c", UNDER_A_LEDGER, str(path), str(script), *arguments]
        forks.run(command, env={**os.environ, **settings}, check=True, timeout=120)
        return read(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("explain"))


@pytest.fixture(scope="module")
def base(runs):
    return runs(BASE)


def only(a, b):
    [found] = explain_runs(a, b)
    return found


def in_text(*changes):
    text = BASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


LARGE = """
import numpy as np, jax
weights = np.arange(400_000, dtype=np.float32)
def f(x): return x + weights
jax.jit(f)(weights)
"""


def test_a_constant_too_large_to_be_kept_is_named_all_the_same(runs):
    found = only(runs(LARGE), runs(LARGE.replace("def f", "weights[7] = 0\ndef f")))
    assert found.verdict == (
        "`computation` changed, the rest is equal: "
        "a constant too large to be kept in the ledger changed."
    )


@pytest.mark.parametrize(
    ("program", "environment", "arguments", "components", "verdict", "line"),
    [
        pytest.param(
            in_text(("f(x):", "g(x):"), ("jit(f)", "jit(g)")),
            {},
            (),
            ["computation"],
            r"rest is equal: the function was renamed\.$",
            r"\+ module @jit_g ",
            id="renamed function",
        ),
        pytest.param(
            in_text(("'a'", "'b'")),
            {},
            (),
            ["computation"],
            r"equal: the output pytree has other keys or another structure .*\)\.$",
            r"result\['b'\]",
            id="other output key",
        ),
        pytest.param(
            in_text(("jit(f)", "jit(f, donate_argnums=0)")),
            {},
            (),
            ["computation"],
            r"equal: donation of an argument\.$",
            r"tf\.aliasing_output|jax\.buffer_donor",
            id="donation",
        ),
        pytest.param(
            in_text(("(f)(x)", "(f)(jax.device_put(x, jax.devices()[0]))")),
            {},
            (),
            ["computation", "compile_options"],
            r"equal: the sharding of an argument or result .*; XLA may not choose",
            r"allow_spmd_sharding_propagation_to_parameters: \[True\] -> \[False\]",
            id="committed argument",
        ),
        pytest.param(
            BASE,
            {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"},
            (),
            ["xla_flags", "compile_options"],
            r"flag --xla_cpu_enable_fast_math=true was added",
            r"xla_cpu_enable_fast_math: false -> true",
            id="XLA flag",
        ),
        pytest.param(
            BASE,
            {},
            ("--xla_own=1",),
            ["xla_flags"],
            r"equal: flag --xla_own=1 was added\.$",
            r"\+ --xla_own=1",
            id="argument of the program",
        ),
        pytest.param(
            in_text(("2.5", "2.75")),
            {},
            (),
            ["computation"],
            r"equal: a constant's value\.$",
            r"\+ .*dense<2\.75",
            id="changed constant",
        ),
        pytest.param(
            PRECISION + BASE,
            {},
            (),
            ["computation"],
            r"equal: matmul precision\.$",
            r"\+ .*HIGHEST",
            id="matmul precision",
        ),
        pytest.param(
            ZSTANDARD + BASE,
            {},
            (),
            ["compression"],
            r"^`compression` changed, the rest is equal: zlib became zstandard\.$",
            r"\+ zstandard",
            id="zstandard installed",
        ),
        pytest.param(
            BASE,
            LOCATED,
            (),
            ["computation"],
            r"equal: source locations are in the key",
            r"False -> True",
            id="metadata in the key",
        ),
        pytest.param(
            in_text(("(f)(x)", "(f)(x[:2, :2])")),
            {},
            (),
            ["computation"],
            r"equal: shapes or dtypes of the arguments, tensor<4x4xf32> became tensor<2x2xf32>",
            r"tensor<2x2xf32>",
            id="other shape",
        ),
        pytest.param(
            in_text(("x @ x", "x * x")),
            {},
            (),
            ["computation"],
            r"equal: the operations of the program\.$",
            r"\+ .*stablehlo\.multiply",
            id="other operation",
        ),
    ],
)
def test_a_miss_names_its_cause(
    runs, base, program, environment, arguments, components, verdict, line
):
    found = only(base, runs(program, *arguments, **environment))
    assert found.status == "key changed"
    assert [difference.component for difference in found.differences] == components
    assert re.search(verdict, found.verdict), found.verdict
    lines = "\n".join(line for difference in found.differences for line in difference.lines)
    assert re.search(line, lines), lines
    assert max(map(len, lines.splitlines())) < 400


def test_the_same_program_again_is_a_hit(runs, base):
    assert only(base, runs(BASE)).status == "hit"


def test_an_edited_line_above_misses_only_with_metadata_in_the_key(runs, base):
    assert only(base, runs("# a comment\n" + BASE)).status == "hit"
    first = runs(BASE, **LOCATED)
    found = only(first, runs("# a comment\n" + BASE, **LOCATED))
    assert found.status == "key changed"
    assert "source locations are in the key" in found.verdict
    assert any("loc(" in line for line in found.differences[0].lines)


def test_a_moved_directory_voids_the_cache_on_jax_0_10_only(runs):
    first = runs(BASE, cache="here")
    (runs.folder / "here").rename(runs.folder / "there")
    found = only(first, runs(BASE, cache="there"))
    if OLD:
        assert [difference.component for difference in found.differences] == ["compile_options"]
        assert "the cache's directory was moved" in found.verdict
        assert re.search(r"here/.* -> .*there/", found.differences[0].lines[0])
    else:
        assert found.status == "hit"


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"JAX_COMPILATION_CACHE_DIR": ""}, r"had no cache to ask: no directory"),
        ({"JAX_ENABLE_COMPILATION_CACHE": "0"}, r"had no cache to ask: disabled"),
    ],
)
def test_a_second_run_without_a_cache_is_the_cause_whatever_its_key(runs, base, environment, said):
    assert re.search(said, only(base, runs(BASE, **environment)).verdict)


@pytest.mark.skipif(not OLD, reason="later releases do not hash a path in the directory")
def test_another_name_of_the_directory_is_told_from_a_move_and_from_a_setting(runs, base):
    (runs.folder / "link").symlink_to("cache")
    assert "is named by another path" in only(base, runs(BASE, cache="link")).verdict
    found = only(base, runs(BASE, JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES="none"))
    assert "jax_persistent_cache_enable_xla_caches changed" in found.verdict


def test_a_first_run_that_wrote_nothing_is_the_cause(runs):
    """The default threshold: the directory is set and the key is stable, yet nothing is kept."""
    default = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1"}
    first = runs(BASE, cache="default", **default)
    found = only(first, runs(BASE, cache="default", **default))
    assert found.status == "same key, no hit"
    assert re.search(
        r"the first run wrote no entry: below the time threshold \(.* < 1 s\)", found.verdict
    )


def with_component(book, name, *values):
    """Return a book in which one component of every event is another."""

    def changed(component):
        return Component(name, "0" * 64, values) if component.name == name else component

    events = tuple(
        replace(
            event,
            key=event.key[:-6] + "edited",
            components=tuple(changed(component) for component in event.components),
        )
        for event in book.events
    )
    return Requests(events, book.parts)


def test_another_jaxlib_is_named_with_both_versions(base):
    found = only(base, with_component(base, "jax_lib version", "9.9.9"))
    version = jax_names.module("cache_key").jaxlib_version_str
    assert found.verdict == f"jaxlib {version} became 9.9.9: every key is another one."
    assert [difference.component for difference in found.differences] == ["jaxlib"]


def test_another_platform_and_a_custom_hook_are_named(base):
    platform = only(base, with_component(base, "backend version", "cpu", "another"))
    assert platform.verdict.startswith("`platform` changed, the rest is equal")
    hook = only(base, with_component(base, "custom_hook", "mine"))
    assert hook.verdict.startswith("`custom_hook` changed, the rest is equal")


def test_missing_parts_are_said_and_not_guessed(base):
    changed = with_component(base, "computation")
    found = only(Requests(base.events, Parts()), Requests(changed.events, Parts()))
    assert "FILE.parts is missing" in found.differences[0].lines[0]


def test_a_module_of_one_run_alone_is_listed(base):
    found = explain_runs(base, Requests((), Parts()))
    assert [one.status for one in found] == ["only in A"]
    found = explain_runs(Requests((), Parts()), base)
    assert [one.status for one in found] == ["only in B"]


def test_a_large_text_is_compared_in_little_time():
    lines = [f"%{i} = stablehlo.add %{i}, %{i}" for i in range(200_000)]
    changed = [*lines[:1000], *(line.replace("add", "mul") for line in lines[1000:])]
    shown = stablehlo.diff("\n".join(lines), "\n".join(changed))
    assert len(shown) == stablehlo.MAX_LINES + 1


def test_the_command_shows_the_verdict_and_counts_the_hits(runs, base):
    changed = runs(in_text(("2.5", "3.5")))
    paths = [str(book.parts.folder).removesuffix(".parts") for book in (base, changed)]
    done = run_harness("explain", *paths)
    assert done.returncode == 0, done.stderr
    assert "jit_f: `computation` changed, the rest is equal: a constant's value." in done.stdout
    assert done.stdout.endswith("1 modules, 0 of them hits.\n")


def test_no_ledger_is_one_clear_error(tmp_path):
    with pytest.raises(LedgerError, match="cannot be read"):
        read(tmp_path / "nothing.jsonl")


def test_a_first_run_whose_request_failed_is_the_cause(base):
    failed = replace(base.events[0], outcome="failed", detail="no memory")
    missed = replace(base.events[0], outcome="written")
    found = only(Requests((failed,), base.parts), Requests((missed,), base.parts))
    assert found.verdict.endswith("first run's request failed and left no entry: no memory")
