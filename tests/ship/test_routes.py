from __future__ import annotations

import importlib.util
import json
import pickle
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from harness.declare import discovery
from harness.errors import UsageError
from harness.ship import cases, routes
from harness.ship.programs import call_of, inputs, jitted, plain
from harness.stages.prepared import prepare
from harness.watch.first_step import reason_of

SMALL = Path(__file__).parents[1] / "suites" / "troubled"
SHIP = "cache", "ship", "Scale", "--benchmarks", SMALL

HAS_FLATBUFFERS = importlib.util.find_spec("flatbuffers") is not None


def masked():
    workload = discovery.one_workload("Masked", SMALL.with_name("shipped"))
    return workload, cases.cases_of(workload)[0]


@pytest.fixture(scope="module")
def report():
    return routes.compare(*masked(), processes=1, seed=1)


def test_every_path_is_proven_has_the_steps_that_it_needs_and_is_counted_in_bytes(report):
    rows = {row.path: row for row in report.rows}
    steps = {path: set(routes.STEPS) for path in rows}
    steps["serialized executable"] -= {"trace", "lower", "compile"}
    for path, row in rows.items():
        if "export" in path and not HAS_FLATBUFFERS:
            assert (row.status, "pip install flatbuffers" in row.reason) == ("n/a", True)
            continue
        assert (path, row.status, row.reason) == (path, "ok", "")
        (replicate,) = row.counted
        assert (path, set(replicate.steps_s)) == (path, steps[path])
        assert row.median_s() == pytest.approx(replicate.total_s)
        assert replicate.total_s == pytest.approx(sum(replicate.steps_s.values()))
        assert 0 < replicate.total_s < time.monotonic()  # no longer than this machine is up
        assert (row.shipped_bytes > 500) == (path != "jit")
    assert rows["jit"].shipped_bytes == 0


def test_a_function_is_shipped_as_its_user_has_jitted_it():
    prepared = prepare(*masked())
    call = call_of(prepared)
    lowered = jitted(*masked(), call).lower(*prepared.abstract)
    told = [one.donated for one in jax.tree_util.tree_leaves(lowered.args_info)]
    assert (call["names"], told) == (("mask", "scale"), [False, True, False])
    assert lowered.as_text().startswith("module @jit_masked")


def test_a_key_is_shipped_with_its_implementation(tmp_path):
    key = jax.random.key(3, impl="rbg")
    (tmp_path / "data").write_bytes(pickle.dumps(([0], [plain(key)])))
    assert inputs({}, tmp_path / "data") == [key]


def test_a_warm_cache_that_does_not_answer_is_no_time_of_that_path(monkeypatch):
    monkeypatch.setattr(routes, "ROUTES", routes.ROUTES[:2])
    variables = cases.variables
    monkeypatch.setattr(cases, "variables", lambda *rest: variables(*rest[:-1], None))
    warm = routes.compare(*masked(), processes=1, seed=1).rows[1]
    assert (warm.status, warm.median_s(*routes.STEPS)) == ("refused", None)
    assert "the warm cache did not answer" in warm.reason


def test_a_path_with_another_result_is_said_to_differ():
    ones = np.ones(4, "float32")
    assert routes.difference([ones], [ones * (1 + 1e-6)]) is None
    nearly = np.array([1e3, 1e-3], "float32")  # of the largest value
    assert routes.difference([np.array([1e3, 0], "float32")], [nearly]) is None
    assert "other values" in routes.difference([ones], [ones * 1.01])
    assert "has 2 leaves" in routes.difference([ones], [ones, ones])
    assert "float64(4,)" in routes.difference([ones], [ones.astype("float64")])
    assert "other values" in routes.difference([np.array([1])], [np.array([2])])


ODD = """
import equinox as eqx
from harness import Workload, spec

@eqx.filter_jit
def apply(function, x):
    return function(x)

class Odd(Workload):
    def inputs(self):
        return abs, spec((4,))

    function = staticmethod(apply)
"""


def test_inputs_that_are_neither_arrays_nor_numbers_are_refused_with_what_they_are(tmp_path):
    pytest.importorskip("equinox")
    (tmp_path / "odd.py").write_text(ODD)
    workload = discovery.one_workload("Odd", tmp_path)
    with pytest.raises(UsageError, match=r"arrays and numbers as inputs, and one of them is a \w+"):
        routes.compare(workload, cases.cases_of(workload)[0], processes=1)


def test_the_command_prints_one_table_or_json_and_draws_the_paths(
    tmp_path, report, monkeypatch, command
):
    monkeypatch.setattr(routes, "compare", lambda *arguments: report)
    code, out, said = command(*SHIP)
    assert (code, "serialized executable" in out) == (0, True), said
    assert json.loads(command(*SHIP, "--json")[1])["rows"][0]["path"] == "jit"
    pytest.importorskip("vl_convert")
    output = tmp_path / "paths.svg"
    assert command(*SHIP, "--figure", output)[0] == 0
    drawn = output.read_text()
    assert drawn.startswith("<svg")
    for text in ("time to the first result", "trace + lower", "jit + warm cache"):
        assert text in drawn


def test_a_figure_that_cannot_be_drawn_is_refused_before_anything_is_measured(tmp_path, command):
    pytest.importorskip("vl_convert")
    (tmp_path / "file").touch()
    for name, more, text in (
        ("paths.gif", (), "expected a name that ends in .svg, .png or .html"),
        ("file/paths.svg", (), "cannot be written"),
        ("paths.svg", ("--symbolic", "size"), "--symbolic takes none"),
    ):
        code, _, said = command(*SHIP, "--figure", tmp_path / name, *more)
        assert (code, text in said) == (2, True), said


def test_an_error_without_words_is_named_by_its_kind():
    assert reason_of(ValueError("first\nsecond")) == "ValueError: first"
    assert reason_of(NotImplementedError()) == "NotImplementedError"
