from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.cache import key_parts
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


def test_options_that_differ_in_their_bytes_only_are_said_to(base):
    kept = SimpleNamespace(get=lambda name: "{}")
    changed = with_component(base, "compile_options")
    found = only(Requests(base.events, kept), Requests(changed.events, kept))
    assert found.differences[0].lines == (
        "no field that JAX lets be read differs; the serialised bytes do",
    )


def test_of_two_of_one_name_the_same_program_is_compared(base):
    other = with_component(base, "computation").events[0]
    same = with_component(base, "jax_lib version", "9.9.9").events[0]
    same = replace(same, key=f"{same.key}2")
    for events in ((other, same), (same, other)):
        found = explain_runs(Requests(events, base.parts), Requests(base.events[:1], base.parts))
        assert [one.a for one in found if one.b] == [same]


def test_a_module_of_one_run_alone_is_listed(base):
    found = explain_runs(base, Requests((), Parts()))
    assert [one.status for one in found] == ["only in A"]
    found = explain_runs(Requests((), Parts()), base)
    assert [one.status for one in found] == ["only in B"]


def test_a_large_text_is_compared_in_little_time():
    lines = [f"%{i} = stablehlo.add %{i}, %{i}" for i in range(200_000)]
    changed = [*lines[:1000], *(line.replace("add", "mul") for line in lines[1000:])]
    shown = key_parts.diff("\n".join(lines), "\n".join(changed))
    assert len(shown) == key_parts.MAX_LINES + 1


def test_the_command_shows_the_verdict_and_counts_the_hits(runs, base):
    changed = runs(BASE.replace("2.5", "3.5"))
    paths = [str(book.parts.folder).removesuffix(".parts") for book in (base, changed)]
    done = run_harness("explain", *paths)
    assert done.returncode == 0, done.stderr
    assert "jit_f: `computation` changed, the rest is equal: a constant's value." in done.stdout
    assert "+ %cst = stablehlo.constant dense<3.5" in done.stdout
    assert done.stdout.startswith("0 of 1 module hit.\n")


def test_modules_of_one_verdict_are_told_together(runs):
    books = runs.once(TWO), runs(UPGRADED + TWO)
    done = run_harness("explain", *(str(b.parts.folder).removesuffix(".parts") for b in books))
    [line] = (line for line in done.stdout.splitlines() if "became 9.9.9" in line and ":" in line)
    assert line.startswith("jit_f, jit_g: jaxlib ")


def test_no_ledger_is_one_clear_error(tmp_path):
    with pytest.raises(LedgerError, match="cannot be read"):
        read(tmp_path / "nothing.jsonl")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({}, {"outcome": "hit"}, "The key is equal, and the cache answered."),
        ({}, {"outcome": "failed", "detail": "lost"}, "; the request failed: lost"),
        ({}, {"outcome": "written", "read_error": "torn"}, "the entry could not be read: torn"),
        (
            {"outcome": "failed", "detail": "no memory"},
            {"outcome": "written"},
            "first run's request failed and left no entry: no memory",
        ),
        (
            {"outcome": "unwritten", "reason": "too quick", "detail": "1 s"},
            {"outcome": "written"},
            "; the first run wrote no entry: too quick (1 s).",
        ),
        (
            {"outcome": "written", "directory": "/a"},
            {"outcome": "written", "directory": "/b"},
            "; the runs used two directories, /a and /b.",
        ),
        (
            {"outcome": "written", "at_s": 2.0},
            {"outcome": "written", "at_s": 1.0},
            "; the second ledger is the older one, so nothing was there yet.",
        ),
        (
            {"outcome": "written", "at_s": 1.0},
            {"outcome": "written", "at_s": 2.0},
            "and the first run left an entry, which was gone: removed, or evicted by another "
            "program; neither run has a size cap.",
        ),
    ],
)
def test_what_became_of_a_request_with_an_equal_key_is_said(base, first, second, said):
    a, b = (replace(base.events[0], **changed) for changed in (first, second))
    found = only(Requests((a,), base.parts), Requests((b,), base.parts))
    assert found.verdict.startswith("The key is equal")
    assert found.verdict.endswith(said)


def devices(**changed):
    kept = {"topology": "", "kinds": ["cpu"], "devices": 1, "processes": 1, "process": 0}
    return json.dumps({**kept, **changed})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ()),
        ({"kinds": ["cpu", "cpu"]}, ("the devices of the process, 1 cpu became 2 cpu",)),
        ({"process": 1}, ("another process of the run, 0 became 1",)),
        ({"processes": 2}, ("the processes of the run, 1 became 2",)),
        ({"processes": 0}, ()),
        ({"devices": 4}, ("the devices of all processes, 1 became 4",)),
    ],
)
def test_devices_that_differ_are_named(changed, said):
    assert key_parts.accelerator_changes(devices(), devices(**changed)) == said


@pytest.mark.parametrize(("number", "end"), [(8, "f6, f7"), (9, "f6, f7 and 1 more")])
def test_of_features_of_a_processor_that_differ_eight_are_named(monkeypatch, number, end):
    kept = [
        replace(key_parts.Accelerator.read(devices()), features=features)
        for features in (frozenset(), frozenset(f"f{one}" for one in range(number)))
    ]
    monkeypatch.setattr(key_parts.Accelerator, "read", lambda text: kept[int(text)])
    (said,) = key_parts.accelerator_changes("0", "1")
    assert said.endswith(end)


def test_compile_options_that_differ_are_named_with_both_values():
    old = {"build.debug": "0", "build.optimization_level": "1", "list": "x" * 200}
    new = {"build.debug": "0", "build.optimization_level": "3", "list": "y" * 200, "more": "1"}
    found = key_parts.option_changes(json.dumps(old), json.dumps(new))
    assert [(one.field, one.cause) for one in found] == [
        ("optimization_level", "the level of optimization, 1 became 3"),
        ("list", "list"),
        ("more", "more, (not set) became 1"),
    ]
    assert found[0].line == "build.optimization_level: 1 -> 3"
