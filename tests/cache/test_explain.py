from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.cache import key_parts
from harness.cache.explain import JAXLIB, Why, explain_runs
from harness.cache.key_parts import KeyChange
from harness.cache.ledger import Requests
from harness.jaxhooks import jax_names
from harness.jaxhooks.events import BELOW_TIME, Component
from harness.jaxhooks.parts import Parts
from harness.output import explain as words
from tests.cache.causes import BASE, CASES, OLD, TWO, UPGRADED, Runs
from tools.probe.bench import NotApplicable

QUICK = (
    "nothing; constant; constant too large to be kept; shape; operation; order of a sum; "
    "iteration over a set; a Python id; a typed key; "
    "name of the function; donation; matmul precision of all; PRNG in the program; "
    "rematerialisation; a line moved, with metadata in the key; committed argument; "
    "number of devices; XLA flag; argument of the program; zstandard installed; no directory; "
    "disabled; directory moved; time threshold; evicted by the first run; removed"
)
"""One of each kind; `python -m tools.cache_causes` tries all."""
TRIED = [case.name for case in CASES] if "TESTS_CAUSES" in os.environ else QUICK.split("; ")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("explain"))


@pytest.fixture(scope="module")
def base(runs):
    return runs.once(BASE)


def only(a, b):
    [found] = explain_runs(a, b)
    return found


@pytest.mark.parametrize("name", TRIED)
def test_a_cause_is_named(runs, name):
    (case,) = (case for case in CASES if case.name == name)
    try:
        found = case.explained(runs)
    except NotApplicable as reason:
        pytest.skip(str(reason))
    assert re.fullmatch(case.old if OLD and case.old else case.expected, words.verdict(found.why))
    for difference in found.differences:
        assert max(map(len, words.lines(difference)), default=0) < 400


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


def test_another_platform_and_a_custom_hook_are_named(base):
    for name in ("backend version", "custom_hook"):
        found = only(base, with_component(base, name, "another"))
        assert (found.why.status, found.why.parts) == ("another key", (name,))
        assert "another" in [one.after for one in found.why.changes if one.kind == "value"]


def test_missing_parts_are_said_and_not_guessed(base):
    changed = with_component(base, "computation")
    found = only(Requests(base.events, Parts()), Requests(changed.events, Parts()))
    assert found.differences[0].changes == (KeyChange("no text"),)
    assert found.why.changes == ()


def test_options_that_differ_in_their_bytes_only_are_said_to(base):
    kept = SimpleNamespace(get=lambda name: "{}")
    changed = with_component(base, "compile_options")
    found = only(Requests(base.events, kept), Requests(changed.events, kept))
    assert found.differences[0].changes == (KeyChange("same fields"),)


def test_of_two_of_one_name_the_same_program_is_compared(base):
    other = with_component(base, "computation").events[0]
    same = with_component(base, "jax_lib version", "9.9.9").events[0]
    same = replace(same, key=f"{same.key}2")
    for events in ((other, same), (same, other)):
        found = explain_runs(Requests(events, base.parts), Requests(base.events[:1], base.parts))
        assert [one.a for one in found if one.b] == [same]


MANY = """
import sys, numpy as np, jax
jax.config.update("jax_enable_x64", len(sys.argv) > 1)
f = jax.jit(lambda x, y: x + y)
sizes = [(5, np.int32)] * (len(sys.argv) > 1) + [(4, np.float64), (6, np.float64)]
for size, dtype in sizes:
    f(np.ones((size, size), dtype), np.float64(1))
"""


def test_of_several_of_one_name_those_of_the_same_shapes_are_compared(runs):
    found = explain_runs(runs(MANY), runs(MANY, "--x64"))
    wide = KeyChange("setting", "jax_enable_x64", "False", "True")
    assert found[0].why == Why("only in B", changes=(wide,))
    for size, one in zip((4, 6), found[1:], strict=True):
        shapes = (f"tensor<{size}x{size}xf{bits}>, tensor<f{bits}>" for bits in (32, 64))
        assert KeyChange("shapes", "", *shapes) in one.why.changes


def test_a_module_of_the_first_run_alone_did_not_miss(runs, says):
    said = says("explain", *files(runs.once(TWO), runs(TWO.replace("jax.jit(g)(x)", ""))))
    assert said.startswith("1 of 1 module hit.\njit_g: Compiled in the first run only")


def test_a_module_of_one_run_alone_is_listed(base):
    none = Requests((), Parts())
    assert only(base, none).why.status == "only in A"
    assert only(none, base).why.status == "only in B"


def test_a_large_text_is_compared_in_little_time():
    lines = [f"%{i} = stablehlo.add %{i}, %{i}" for i in range(200_000)]
    changed = [*lines[:1000], *(line.replace("add", "mul") for line in lines[1000:])]
    shown = key_parts.diff("\n".join(lines), "\n".join(changed))
    assert len(shown) == key_parts.MAX_LINES + 1


def files(*books):
    return [str(book.parts.folder).removesuffix(".parts") for book in books]


def test_the_command_shows_the_verdict_and_counts_the_hits(runs, base, says):
    said = says("explain", *files(base, runs(BASE.replace("2.5", "3.5"))))
    assert "jit_f: `computation` changed, the rest is equal: a constant's value." in said
    assert "+ %cst = stablehlo.constant dense<3.5" in said
    assert said.startswith("0 of 1 module hit.\n")


def test_modules_of_one_verdict_are_told_together(runs, says):
    said = says("explain", *files(runs.once(TWO), runs(UPGRADED + TWO)))
    version = jax_names.module("cache_key").jaxlib_version_str
    assert f"jit_f, jit_g: jaxlib {version} became 9.9.9: every key is another one." in said


def test_a_setting_comes_first_and_the_lines_of_the_dearest_three(runs, says):
    four = "".join(f"jax.jit(lambda: jax.numpy.ones({n}) * {n})()\n" for n in (3, 4, 5, 6))
    first, second = (
        runs(f"import jax\njax.config.update('jax_enable_x64', {wide})\n{four}")
        for wide in (False, True)
    )
    dear = max(second.events, key=lambda event: event.compile_ns).module
    said = says("explain", *files(first, second))
    _, setting, module, *rest = said.splitlines()
    assert setting == "Set otherwise in the second run: jax_enable_x64 was False, is True."
    assert module.startswith(f"{dear}: ")
    assert rest.count("  computation") == 3
    assert re.fullmatch(r"The lines of \d more are shown with --all\.", rest[-1])
    said = says("explain", "--all", *files(first, second)).splitlines()
    assert said.count("  computation") == len(second.events) > 3


@pytest.mark.parametrize(
    ("first", "second", "why", "text"),
    [
        (
            {},
            {"outcome": "failed", "detail": "lost"},
            Why("same key", "failed", "b", "lost"),
            "; the request failed: lost",
        ),
        (
            {},
            {"read_error": "torn"},
            Why("same key", "unreadable", detail="torn"),
            "; the entry could not be read: torn",
        ),
        (
            {"outcome": "failed", "detail": "no memory"},
            {},
            Why("same key", "failed", "a", "no memory"),
            "; the first run's request failed and left no entry: no memory",
        ),
        (
            {"outcome": "unwritten", "reason": BELOW_TIME, "limit": 1.0},
            {},
            Why("same key", "not written", "a", BELOW_TIME, 1.0),
            "; the first run wrote no entry: below the time threshold "
            "(jax_persistent_cache_min_compile_time_secs, 1.0 s).",
        ),
        (
            {"directory": "/a"},
            {"directory": "/b"},
            Why("same key", "two directories", before="/a", after="/b"),
            "; the runs used two directories, /a and /b.",
        ),
        (
            {"at_s": 2.0},
            {"at_s": 1.0},
            Why("same key", "older"),
            "; the second recording is the older one, so nothing was there yet.",
        ),
    ],
)
def test_what_became_of_a_request_with_an_equal_key(base, first, second, why, text):
    written = replace(base.events[0], outcome="written")
    a, b = (replace(written, **changed) for changed in (first, second))
    found = only(Requests((a,), base.parts), Requests((b,), base.parts))
    assert found.why == why
    assert words.verdict(why) == f"The key is equal{text}"


def test_of_an_upgrade_which_changes_other_parts_jaxlib_alone_is_named(base):
    event = base.events[0]
    parts = [one._replace(sha256=one.sha256[::-1]) for one in event.components]
    other = replace(event, key="other", components=tuple(parts))
    found = only(Requests((event,), base.parts), Requests((other,), base.parts))
    assert [one.part for one in found.differences] == [JAXLIB]


def test_a_sharding_that_is_asked_for_inside_is_named():
    line = "%1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<4x4xf32>"
    there, gone = (f"{before}return" for before in (f"{line}\n", ""))
    assert key_parts.program_changes(there, gone) == (KeyChange("constraint"),)


NUMBER, OTHER = "139945885473360", "140392025602704"


@pytest.mark.parametrize(
    "line",
    [
        'stablehlo.custom_call @p(%0) {{backend_config = "{}"}} : tensor<4xf32>',
        pytest.param("module @jit_f_{} attributes {{}}", marks=pytest.mark.nightly),
        pytest.param("mhlo.pointer = {} : i64", marks=pytest.mark.nightly),
    ],
)
def test_a_python_id_in_the_program_is_named_with_both_values(line):
    changes = key_parts.program_changes(line.format(NUMBER), line.format(OTHER))
    assert changes == (KeyChange("python id", "", NUMBER, OTHER),)
    constant = "%cst = stablehlo.constant dense<{}> : tensor<ui64>"
    changes = key_parts.program_changes(constant.format(NUMBER), constant.format(OTHER))
    assert changes == (KeyChange("constant"),)


def devices(**changed):
    kept = {"topology": "", "kinds": ["cpu"], "devices": 1, "processes": 1, "process": 0}
    return json.dumps({**kept, **changed})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"process": 1}, (KeyChange("process", "", "0", "1"),)),
        ({"processes": 2}, (KeyChange("processes", "", "1", "2"),)),
        ({"processes": 0}, ()),
        ({"devices": 4}, (KeyChange("all devices", "", "1", "4"),)),
    ],
)
def test_devices_that_differ_are_named(changed, expected):
    assert key_parts.accelerator_changes(devices(), devices(**changed)) == expected


def test_of_features_of_a_processor_that_differ_eight_are_named(monkeypatch):
    kept = [
        replace(key_parts.Accelerator.read(devices()), features=frozenset(features))
        for features in ((), (f"f{one}" for one in range(9)))
    ]
    monkeypatch.setattr(key_parts.Accelerator, "read", lambda text: kept[int(text)])
    (change,) = key_parts.accelerator_changes("0", "1")
    assert words.change_text(change).endswith("with f0, f1, f2, f3, f4, f5, f6, f7 and 1 more")


def test_compile_options_that_differ_are_named_with_both_values():
    old = {"build.debug": "0", "build.optimization_level": "1", "list": "x" * 200}
    new = {"build.debug": "0", "build.optimization_level": "3", "list": "y" * 200, "more": "1"}
    found = key_parts.option_changes(json.dumps(old), json.dumps(new))
    assert [words.change_text(one) for one in found] == [
        *("the level of optimization, 1 became 3", "list", "more, (not set) became 1")
    ]
    assert found[0] == KeyChange("option", "build.optimization_level", "1", "3")
