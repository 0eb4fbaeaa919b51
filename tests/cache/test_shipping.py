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
from typer.testing import CliRunner

from harness.cli.cache import app
from harness.declare import discovery
from harness.errors import UsageError
from harness.ship import cases as subjects
from harness.ship import routes as shipping
from harness.ship import symbolic
from harness.ship.build_child import in_a_line
from harness.ship.results import difference
from harness.ship.symbolic_child import NotSymbolic, symbolic_shapes

SMALL = Path(__file__).parents[1] / "suites" / "troubled"

HAS_FLATBUFFERS = importlib.util.find_spec("flatbuffers") is not None


def scale():
    workload = discovery.one_workload("Scale", SMALL)
    return workload, subjects.cases_of(workload)


@pytest.fixture(scope="module")
def report():
    workload, cases = scale()
    return shipping.compare(workload, cases[0], processes=1, seed=1)


def row(report, path):
    return next(row for row in report.rows if row.path == path)


def test_every_path_that_can_be_taken_is_proven_in_every_process(report):
    for found in report.rows:
        if "export" in found.path and not HAS_FLATBUFFERS:
            continue
        assert (found.path, found.status, found.reason) == (found.path, "ok", "")
        assert len(found.counted) == 1
        assert all(0 < replicate.total_s < 60 for replicate in found.counted)


def test_each_path_has_the_steps_that_it_needs_and_no_others(report):
    plain = row(report, "jit").counted[0].steps_s
    assert tuple(plain) == shipping.STEPS
    loaded = row(report, "serialized executable").counted[0].steps_s
    assert set(shipping.STEPS) - set(loaded) == {"trace", "lower", "compile"}


def test_what_is_shipped_is_counted_in_bytes(report):
    assert row(report, "jit").shipped_bytes == 0
    assert row(report, "jit + warm cache").shipped_bytes > 500
    assert row(report, "serialized executable").shipped_bytes > 500


@pytest.mark.skipif(HAS_FLATBUFFERS, reason="flatbuffers is installed here")
def test_without_flatbuffers_the_exports_say_what_to_install(report):
    for path in ("export", "export + warm cache"):
        found = row(report, path)
        assert found.status == "n/a"
        assert "pip install flatbuffers" in found.reason


def test_the_frame_has_a_row_per_path_and_process(report):
    frame = shipping.frame(report)
    assert len(frame[frame.status == "ok"]) >= 3
    assert set(frame.path) == {route.name for route in shipping.PATHS}
    assert {f"{step}_s" for step in shipping.STEPS} <= set(frame.columns)


def test_a_warm_cache_that_does_not_answer_is_no_time_of_that_path(monkeypatch):
    routes = (shipping.PATHS[0], shipping.PATHS[1])
    monkeypatch.setattr(shipping, "PATHS", routes)
    monkeypatch.setattr(
        shipping._Comparison, "_cache", lambda self, route: self.folder / "no" / str(id(object()))
    )
    monkeypatch.setattr(
        shipping._Comparison, "_variables", lambda self, route: _without_cache(self)
    )
    workload, cases = scale()
    found = shipping.compare(workload, cases[0], processes=1, seed=1).rows[1]
    assert found.status == "refused"
    assert found.median_s is None
    assert "the warm cache did not answer" in found.reason


def _without_cache(comparison):
    from harness.ship import children

    return children.environment(comparison.workload, comparison.case, None)


def test_a_path_with_another_result_is_said_to_differ():
    ones = np.ones(4, "float32")
    assert difference([ones], [ones * (1 + 1e-6)]) is None
    assert "other values" in difference([ones], [ones * 1.01])
    assert "has 2 leaves" in difference([ones], [ones, ones])
    assert "float64(4,)" in difference([ones], [ones.astype("float64")])
    assert "other values" in difference([np.array([1])], [np.array([2])])


def test_one_export_serves_every_size():
    workload, cases = scale()
    found = symbolic.compare(workload, cases, "size", processes=1, seed=1)
    assert found.shapes == ["(b,)"]
    assert found.reason == ""
    frame = symbolic.frame(found)
    assert list(frame["size"]) == [8, 16]
    assert list(frame["status"]) == ["ok", "ok"]
    assert (frame["shipped_compile_s"] > 0).all()


def test_a_size_that_is_no_multiple_of_the_symbol_is_named():
    def specs(*shapes):
        return [(jax.ShapeDtypeStruct(shape, "float32"),) for shape in shapes]

    assert symbolic_shapes(specs((4, 8, 3), (5, 10, 3)), [4, 5]) == ("(b, 2*b, 3)",)
    with pytest.raises(NotSymbolic, match=r"input 0 has the lengths \[3, 9\] for the sizes"):
        symbolic_shapes(specs((3,), (9,)), [4, 5])


def test_axes_that_are_no_sizes_are_refused():
    workload, cases = scale()
    with pytest.raises(UsageError, match=r"has no axis 'batch'; it has size"):
        symbolic.cases_along(workload, cases, "batch")
    with pytest.raises(UsageError, match=r"at least two different sizes"):
        symbolic.cases_along(workload, cases[:1], "size")
    with pytest.raises(UsageError, match=r"processes is 0; expected"):
        shipping.compare(workload, cases[0], processes=0)
    with pytest.raises(UsageError, match=r"processes is 0; expected"):
        symbolic.compare(workload, cases, "size", processes=0)


def test_the_command_prints_one_table_or_json(report, monkeypatch):
    monkeypatch.setattr(shipping, "compare", lambda *arguments: report)
    command = ["ship", "Scale", "--benchmarks", str(SMALL)]
    table = CliRunner().invoke(app, command)
    assert table.exit_code == 0
    assert "serialized executable" in table.output
    done = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(done.stdout)["rows"][0]["path"] == "jit"


def test_the_command_for_one_export_of_every_size():
    command = [sys.executable, "-m", "harness", "cache", "ship", "Scale", "--processes", "1"]
    command += ["--benchmarks", str(SMALL), "--symbolic", "size"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "One export of (b,)" in done.stdout


def ship(*arguments):
    command = [sys.executable, "-m", "harness", "cache", "ship", *arguments]
    command += ["--benchmarks", str(SMALL)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_the_paths_are_drawn_into_a_figure(tmp_path, suffix):
    pytest.importorskip("vl_convert")
    output = tmp_path / f"paths.{suffix}"
    done = ship("Scale", "--processes", "1", "--figure", str(output))
    assert done.returncode == 0, done.stderr
    content = output.read_bytes()
    starts = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}
    assert content.lstrip().startswith(starts[suffix])
    if suffix == "svg":
        for text in (b"time to the first result", b"trace + lower", b"jit + warm cache"):
            assert text in content


def test_a_figure_of_an_unknown_kind_is_refused_before_anything_is_measured(tmp_path):
    done = ship("Scale", "--figure", str(tmp_path / "paths.gif"))
    assert done.returncode == 2
    assert "expected a name that ends in .svg, .png or .html" in done.stderr


def test_a_figure_that_cannot_be_written_or_is_not_drawn_is_refused_before(tmp_path):
    pytest.importorskip("vl_convert")
    (tmp_path / "file").touch()
    done = ship("Scale", "--figure", str(tmp_path / "file" / "paths.svg"))
    assert (done.returncode, "cannot be written" in done.stderr) == (2, True)
    assert "Traceback" not in done.stderr
    done = ship("Scale", "--figure", str(tmp_path / "paths.svg"), "--symbolic", "size")
    assert (done.returncode, "--symbolic takes none" in done.stderr) == (2, True)


def test_an_error_without_words_is_named_by_its_kind():
    assert in_a_line(ValueError("first\nsecond")) == "ValueError: first"
    assert in_a_line(NotImplementedError()) == "NotImplementedError"


def test_a_size_that_no_process_proved_makes_the_exit_code_3(monkeypatch):
    steps = {"trace": 0.1, "lower": 0.1, "compile": 0.1}
    sizes = [symbolic.Size(8, steps, steps), symbolic.Size(16, steps, steps, "another result")]
    found = symbolic.Report(
        "Scale", "size", 1, {"jax": "1", "python": "3"}, ["(b,)"], [0.1], 9, sizes=[sizes]
    )
    monkeypatch.setattr(symbolic, "compare", lambda *arguments: found)
    command = ["ship", "Scale", "--benchmarks", str(SMALL), "--symbolic", "size"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 3
    assert "refused: another result" in done.output
    assert "nan" not in done.output


@pytest.mark.parametrize("command", [["ship", "Scale", "--benchmarks", str(SMALL)], ["probe"]])
def test_a_scheduler_that_ends_the_command_leaves_no_process_and_no_folder(tmp_path, command):
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "cache", *command],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(SMALL.parents[2])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    give_up_s = time.monotonic() + 60
    while not list(tmp_path.glob("harness-*/*")) and time.monotonic() < give_up_s:
        time.sleep(0.05)
    time.sleep(0.2)  # until its child has started
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("harness-*"))
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in running.stdout
