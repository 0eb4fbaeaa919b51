"""CacheSettings that did not take effect, or took it too late, and what is said of them."""

from __future__ import annotations

import itertools
import sys

import pytest

from harness.cache.explain import explain_runs
from harness.cache.ledger import later_directories, later_directory, read, summarize
from harness.jaxhooks import events as reasons
from harness.jaxhooks.events import Overridden
from harness.output.cache import problem_lines
from harness.output.explain import verdict
from harness.output.ledger import rate_lines
from tests import forks
from tests.cache.causes import UNDER_A_LEDGER, Runs
from tests.cache.filled import environment

COMPILE = """
import sys, os, numpy as np, jax, jax.numpy as jnp
x = np.arange(4, dtype=np.float32)
def set(name, value): jax.config.update("jax_" + name, value)
def f(x): return jnp.sin(x) * 2
def g(x): return jnp.cos(x) * 3
"""
LEAST_S = "jax_persistent_cache_min_compile_time_secs"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("settings"))


def events(runs, program, **settings):
    """Return what is recorded of `f` and `g`."""
    book = runs(COMPILE + program, **settings)
    return [event for event in book.events if event.module in ("jit_f", "jit_g")]


def nightly(*values):
    return pytest.param(*values, marks=pytest.mark.nightly)


@pytest.mark.parametrize(
    ("program", "settings", "expected"),
    [
        (
            f"jax.config.update('{LEAST_S}', 60.0)",
            {},
            Overridden(LEAST_S, "0", "60.0"),
        ),
        nightly(
            "set('persistent_cache_min_entry_size_bytes', 10**6)",
            {"JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "5"},
            Overridden("jax_persistent_cache_min_entry_size_bytes", "5", "1000000"),
        ),
        nightly(
            "set('enable_compilation_cache', False)",
            {"JAX_ENABLE_COMPILATION_CACHE": "true"},
            Overridden("jax_enable_compilation_cache", "true", "False"),
        ),
    ],
)
def test_a_variable_that_has_no_effect_is_recorded_with_both_values(
    runs, program, settings, expected
):
    (event,) = events(runs, f"{program}\njax.jit(f)(x)\n", **settings)
    assert event.overridden == (expected,)
    if event.value is not None:
        assert event.limit == float(expected.value)
    (line,) = (one for one in problem_lines(summarize([event])) if "has no effect" in one)
    assert f"{expected.name.upper()}={expected.variable} has no effect" in line
    assert expected.value in line


def test_settings_that_take_effect_are_not_listed(runs):
    (event,) = events(
        runs,
        "jax.jit(f)(x)\n",
        JAX_ENABLE_COMPILATION_CACHE="true",
        JAX_COMPILATION_CACHE_MAX_SIZE="9000000",
    )
    assert (event.outcome, event.overridden, event.late) == ("written", (), ())


def test_a_directory_that_is_set_after_import_is_named(runs):
    program = COMPILE + "set('compilation_cache_dir', None)\njax.jit(f)(x)\n"
    (event,) = (one for one in runs(program).events if one.module == "jit_f")
    assert event.reason == reasons.NO_DIRECTORY
    assert event.overridden[0].name == "jax_compilation_cache_dir"
    (one,) = explain_runs(runs(COMPILE + "jax.jit(f)(x)\n"), runs(program))
    assert (one.why.reason, one.why.run) == ("no effect", "b")
    assert "JAX_COMPILATION_CACHE_DIR=" in verdict(one.why)


LATE = {
    "other directory": ("set('compilation_cache_dir', base + '/b')", "jax_compilation_cache_dir"),
    "no directory": ("set('compilation_cache_dir', None)", "jax_compilation_cache_dir"),
    "off": ("set('enable_compilation_cache', False)", "jax_enable_compilation_cache"),
    "cap": ("set('compilation_cache_max_size', 5)", "jax_compilation_cache_max_size"),
}


@pytest.mark.parametrize("how", ["other directory", *map(nightly, ("no directory", "off", "cap"))])
def test_a_setting_that_came_after_the_first_use_is_named_with_what_is_used(runs, tmp_path, how):
    change, name = LATE[how]
    program = f"base = {str(tmp_path)!r}\nset('compilation_cache_dir', base + '/a')\njax.jit(f)(x)"
    first, second = events(runs, f"{program}\n{change}\njax.jit(g)(x)\n")
    assert (first.late, [one.name for one in second.late]) == ((), [name])
    assert (second.outcome, second.directory) == ("written", str(tmp_path / "a"))
    assert len(list((tmp_path / "a").glob("jit_g-*-cache"))) == 1
    assert summarize([first, second]).late == second.late


@pytest.mark.nightly
def test_a_cache_that_is_switched_on_too_late_is_not_called_unable(runs):
    first, second = events(
        runs,
        "set('enable_compilation_cache', False)\njax.jit(f)(x)\n"
        "set('enable_compilation_cache', True)\njax.jit(g)(x)\n",
    )
    assert (first.reason, second.reason) == (reasons.DISABLED, reasons.DISABLED)
    assert second.detail == reasons.OFF_AT_FIRST_USE


def test_a_directory_that_is_set_late_is_told_of_the_requests_before(runs, tmp_path):
    program = (
        f"set('compilation_cache_dir', None)\njax.jit(f)(x)\n"
        f"set('compilation_cache_dir', {str(tmp_path)!r})\njax.jit(g)(x)\n"
    )
    first, second = events(runs, program)
    assert [
        later_directory(one, later_directories([first, second])) for one in (first, second)
    ] == [str(tmp_path), ""]
    assert summarize([first, second]).before_directory == 1
    book = runs(COMPILE + program)
    why = {one.module: one.why for one in explain_runs(runs(COMPILE + "jax.jit(f)(x)"), book)}
    assert (why["jit_f"].reason, why["jit_f"].detail) == ("set later", str(tmp_path))


PLACES = {
    "relative": ("os.chdir({place!r}); set('compilation_cache_dir', './c')", "relative directory"),
    "home of each": ("set('compilation_cache_dir', {place!r} + '/c')", "two directories"),
    "changed folder": (
        "set('compilation_cache_dir', 'c'); os.chdir({place!r})",
        "relative directory",
    ),
}


@pytest.mark.parametrize("name", ["relative", *map(nightly, ("home of each", "changed folder"))])
def test_two_working_directories_are_two_directories(runs, tmp_path, name):
    change, reason = PLACES[name]
    change += "; set('persistent_cache_enable_xla_caches', 'none')"  # in the key of jax 0.10.2
    books = []
    for place in ("one", "two"):
        folder = tmp_path / place
        folder.mkdir()
        books.append(runs(f"{COMPILE}{change.format(place=str(folder))}\njax.jit(f)(x)\n"))
        assert {event.directory for event in books[-1].events} == {str(folder / "c")}
        relative = summarize(books[-1].events).relative
        assert (relative != ()) == (reason == "relative directory")
        assert any("relative" in line for line in problem_lines(summarize(books[-1].events))) == (
            relative != ()
        )
    (one,) = explain_runs(*books)
    assert (one.why.status, one.why.reason) == ("same key", reason)
    assert [one.why.before, one.why.after] == [str(tmp_path / at / "c") for at in ("one", "two")]


@pytest.mark.parametrize("cap", ["-1", *map(nightly, ["10000000"])])
def test_checking_contents_is_why_an_entry_that_is_there_is_not_used(tmp_path, cap):
    script = tmp_path / "program.py"  # its name is in what is compared, and not in the key
    script.write_text(COMPILE + "jax.jit(f)(x)\n")
    settings = {
        "JAX_COMPILATION_CACHE_CHECK_CONTENTS": "1",
        "JAX_COMPILATION_CACHE_MAX_SIZE": cap,
    }
    books = []
    for number in range(3):
        book = tmp_path / f"{number}.jsonl"
        forks.run(
            [sys.executable, "-c", UNDER_A_LEDGER, str(book), str(script)],
            check=True,
            env=environment(tmp_path / "cache", **settings),
        )
        books.append(read(book))
    assert [book.events[0].outcome for book in books] == ["written", "unwritten", "unwritten"]
    assert [book.events[0].reason for book in books[1:]] == [reasons.CHECKED] * 2
    for pair in itertools.pairwise(books):
        (one,) = explain_runs(*pair)
        assert (one.why.status, one.why.reason) == ("same key", "checked")


def test_where_all_compiles_hit_what_no_cache_saves_is_named(runs):
    runs(COMPILE + "jax.jit(f)(x)\n", cache="warm")
    warm = runs(COMPILE + "jax.jit(f)(x)\n", cache="warm")
    assert summarize(warm.events).by_count.value == 1.0
    assert any("trace and lower" in line for line in rate_lines(summarize(warm.events)))
    partly = runs(COMPILE + "jax.jit(f)(x)\njax.jit(g)(x)\n", cache="warm")
    assert not any("trace and lower" in line for line in rate_lines(summarize(partly.events)))
