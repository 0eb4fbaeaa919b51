from __future__ import annotations

from dataclasses import replace

import pytest

from harness.cache import stablehlo_difference as stablehlo
from harness.cache.explain import explain_runs
from harness.cache.ledger import LedgerError, read
from harness.watch import jax_names
from harness.watch.ledger_events import Component, Parts, Requests
from tests.cache.causes import BASE, CASES, TWO, UPGRADED, Runs
from tests.cache.filled import run_harness

QUICK = (
    "nothing",
    "constant",
    "constant too large to be kept",
    "shape",
    "operation",
    "order of a sum",
    "name of the function",
    "donation",
    "matmul precision of all",
    "PRNG in the program",
    "rematerialisation",
    "a line moved, with metadata in the key",
    "committed argument",
    "number of devices",
    "XLA flag",
    "argument of the program",
    "zstandard installed",
    "no directory",
    "disabled",
    "directory moved",
    "time threshold",
    "evicted by the first run",
    "removed",
)
"""One of each kind; `python -m tests.cache_causes` tries all."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("explain"))


@pytest.fixture(scope="module")
def base(runs):
    return runs.once(BASE)


def only(a, b):
    [found] = explain_runs(a, b)
    return found


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES if c.name in QUICK])
def test_a_cause_is_named(runs, case):
    found = case.explained(runs)
    assert case.is_right(found), found.verdict
    for difference in found.differences:
        assert max(map(len, difference.lines), default=0) < 400


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
    changed = runs(BASE.replace("2.5", "3.5"))
    paths = [str(book.parts.folder).removesuffix(".parts") for book in (base, changed)]
    done = run_harness("explain", *paths)
    assert done.returncode == 0, done.stderr
    assert "jit_f: `computation` changed, the rest is equal: a constant's value." in done.stdout
    assert "+ %cst = stablehlo.constant dense<3.5" in done.stdout
    assert done.stdout.endswith("1 modules, 0 of them hits.\n")


def test_modules_of_one_verdict_are_told_together(runs):
    books = runs.once(TWO), runs(UPGRADED + TWO)
    done = run_harness("explain", *(str(b.parts.folder).removesuffix(".parts") for b in books))
    [line] = (line for line in done.stdout.splitlines() if "became 9.9.9" in line and ":" in line)
    assert line.startswith("jit_f, jit_g: jaxlib ")


def test_no_ledger_is_one_clear_error(tmp_path):
    with pytest.raises(LedgerError, match="cannot be read"):
        read(tmp_path / "nothing.jsonl")


def test_a_first_run_whose_request_failed_is_the_cause(base):
    failed = replace(base.events[0], outcome="failed", detail="no memory")
    missed = replace(base.events[0], outcome="written")
    found = only(Requests((failed,), base.parts), Requests((missed,), base.parts))
    assert found.verdict.endswith("first run's request failed and left no entry: no memory")
