from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from click.testing import CliRunner

from harness.cli import app
from harness.declare import discovery
from harness.errors import UsageError
from harness.ship import cases, routes
from harness.ship.programs import call_of, first_line, jitted
from harness.stages.prepared import prepare

SMALL = Path(__file__).parents[1] / "suites" / "troubled"
ROOT = Path(__file__).parents[2]

HAS_FLATBUFFERS = importlib.util.find_spec("flatbuffers") is not None
JAX_STEPS = ("trace", "lower", "compile")


def scale():
    workload = discovery.one_workload("Scale", SMALL)
    return workload, cases.cases_of(workload)[0]


def masked():
    workload = discovery.one_workload("Masked", SMALL.with_name("shipped"))
    return workload, cases.cases_of(workload)[0]


def ship(*arguments):
    command = [sys.executable, "-m", "harness", "cache", "ship", "Scale", *arguments]
    command += ["--benchmarks", str(SMALL)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def report():
    return routes.compare(*masked(), processes=1, seed=1)


def row(report, path):
    return next(row for row in report.rows if row.path == path)


def test_every_path_that_can_be_taken_is_proven_in_every_process(report):
    for one in report.rows:
        if "export" in one.path and not HAS_FLATBUFFERS:
            continue
        assert (one.path, one.status, one.reason) == (one.path, "ok", "")
        assert [0 < replicate.total_s < 60 for replicate in one.counted] == [True]


def test_each_path_has_the_steps_that_it_needs_and_no_others(report):
    plain = row(report, "jit").counted[0].steps_s
    assert tuple(plain) == routes.STEPS
    assert row(report, "jit").median_s(*routes.STEPS) == pytest.approx(sum(plain.values()))
    loaded = row(report, "serialized executable").counted[0].steps_s
    assert set(routes.STEPS) - set(loaded) == set(JAX_STEPS)


def test_a_function_is_shipped_as_its_user_has_jitted_it():
    prepared = prepare(*masked())
    call = call_of(prepared)
    lowered = jitted(*masked(), call).lower(*prepared.abstract)
    told = [one.donated for one in jax.tree_util.tree_leaves(lowered.args_info)]
    assert (call["names"], told) == (("mask", "scale"), [False, True, False])
    assert lowered.as_text().startswith("module @jit_masked")


def test_what_is_shipped_is_counted_in_bytes(report):
    assert row(report, "jit").shipped_bytes == 0
    assert row(report, "jit + warm cache").shipped_bytes > 500
    assert row(report, "serialized executable").shipped_bytes > 500


@pytest.mark.skipif(HAS_FLATBUFFERS, reason="flatbuffers is installed here")
def test_without_flatbuffers_the_exports_say_what_to_install(report):
    for path in ("export", "export + warm cache"):
        assert row(report, path).status == "n/a"
        assert "pip install flatbuffers" in row(report, path).reason


def test_a_warm_cache_that_does_not_answer_is_no_time_of_that_path(monkeypatch):
    monkeypatch.setattr(routes, "ROUTES", routes.ROUTES[:2])
    variables = cases.variables
    monkeypatch.setattr(cases, "variables", lambda *rest: variables(*rest[:-1], None))
    warm = routes.compare(*scale(), processes=1, seed=1).rows[1]
    assert (warm.status, warm.median_s(*routes.STEPS)) == ("refused", None)
    assert "the warm cache did not answer" in warm.reason


def test_a_path_with_another_result_is_said_to_differ():
    ones = np.ones(4, "float32")
    assert routes.difference([ones], [ones * (1 + 1e-6)]) is None
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


def test_no_processes_are_refused():
    with pytest.raises(UsageError, match=r"processes is 0; expected"):
        routes.compare(*scale(), processes=0)


def test_the_command_prints_one_table_or_json(report, monkeypatch):
    monkeypatch.setattr(routes, "compare", lambda *arguments: report)
    command = ["cache", "ship", "Scale", "--benchmarks", str(SMALL)]
    table = CliRunner().invoke(app, command)
    assert table.exit_code == 0
    assert "serialized executable" in table.output
    done = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(done.stdout)["rows"][0]["path"] == "jit"


@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_the_paths_are_drawn_into_a_figure(tmp_path, suffix, report, monkeypatch):
    pytest.importorskip("vl_convert")
    monkeypatch.setattr(routes, "compare", lambda *arguments: report)
    output = tmp_path / f"paths.{suffix}"
    command = ["cache", "ship", "Scale", "--benchmarks", str(SMALL), "--figure", str(output)]
    assert CliRunner().invoke(app, command).exit_code == 0
    content = output.read_bytes()
    starts = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}
    assert content.lstrip().startswith(starts[suffix])
    if suffix == "svg":
        for text in (b"time to the first result", b"trace + lower", b"jit + warm cache"):
            assert text in content


def test_a_figure_that_cannot_be_drawn_is_refused_before_anything_is_measured(tmp_path):
    pytest.importorskip("vl_convert")
    (tmp_path / "file").touch()
    for options, text in (
        ([str(tmp_path / "paths.gif")], "expected a name that ends in .svg, .png or .html"),
        ([str(tmp_path / "file" / "paths.svg")], "cannot be written"),
        ([str(tmp_path / "paths.svg"), "--symbolic", "size"], "--symbolic takes none"),
    ):
        done = ship("--figure", *options)
        assert (done.returncode, text in done.stderr) == (2, True), done.stderr
        assert "Traceback" not in done.stderr


def test_an_error_without_words_is_named_by_its_kind():
    assert first_line(ValueError("first\nsecond")) == "ValueError: first"
    assert first_line(NotImplementedError()) == "NotImplementedError"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")
def test_a_scheduler_that_ends_the_command_leaves_no_process_and_no_folder(
    tmp_path, fresh_processes
):
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "cache", "ship", "Scale", "--benchmarks", str(SMALL)],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    give_up_s = time.monotonic() + 60
    while len(processes_with(tmp_path)) < 2 and time.monotonic() < give_up_s:
        time.sleep(0.05)
    assert list(tmp_path.glob("harness-*"))
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("harness-*"))
    assert processes_with(tmp_path) == []


def processes_with(folder):
    """Return the numbers of the processes whose temporary folder it is, or is in."""
    numbers = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}".encode() in path.read_bytes():
                numbers.append(path.parent.name)
        except OSError:
            continue
    return numbers
