"""What a sweep makes of code that is edited: between two of them, and in the middle of one."""

import os
import sys
import time

import numpy as np
import pytest

from harness.frame.load import everything
from harness.frame.process_values import PROGRAM_CHANGED
from harness.measure.context import Options, local_context
from harness.measure.sweep import sweep
from harness.records.store import Store
from harness.stages.sampling import effort
from harness.workload import code
from harness.workload.discovery import discover

WORKLOAD = """\
import os
import numpy as np
from harness import Workload, spec
from helper import function as helped


class Helped(Workload):
    sweep = {"size": [8]}
    function = staticmethod(helped)

    def inputs(self, size):
        return spec((size,))


class Configured(Workload):
    depends_on = ("env:HARNESS_MODE", "weights.npy")

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        mode, more = os.environ.get("HARNESS_MODE", 1), os.environ.get("HARNESS_MORE", 0)
        for _ in range(int(mode) + int(more)):
            x = x * np.load("weights.npy")
        return x
"""
HELPER = "def function(x):\n    return x + {}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "edited_suite").mkdir()
    (tmp_path / "edited_suite/edited.py").write_text(WORKLOAD)
    (tmp_path / "helper.py").write_text(HELPER.format(1))
    np.save(tmp_path / "weights.npy", np.ones(8, "float32"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield tmp_path
    for name in ("edited_suite.edited", "edited_suite", "helper"):
        sys.modules.pop(name, None)


def measure(project, on_progress=lambda progress: None, processes=2, name="Helped", **options):
    found = discover(project / "edited_suite").workloads
    workloads = [workload for workload in found if workload.__name__ == name]
    context = local_context(project / "results", project)
    asked = Options(effort(f"{processes}x1"), targets=("cpu",), **options)
    return sweep(workloads, context, asked, on_progress)


def editing(edit, most=1):
    """The records after which `edit` is called with their number, and what sees to that."""
    records = []

    def on_progress(progress):
        if progress.record and len(records) < most:
            records.append(progress.record)
            edit(len(records))

    return records, on_progress


def ran(outcome, file="./helper.py"):
    return {r.code[file] for r in outcome.records if r.workload.startswith("edited.")}


def test_an_edit_between_two_processes_has_the_first_measured_again(project):
    def edit(number):
        (project / "helper.py").write_text(HELPER.format(1 + number))

    edited, on_progress = editing(edit)
    outcome = measure(project, on_progress)
    assert outcome.measured == 3
    assert len(ran(outcome)) == 1
    assert code.conflicts(outcome.records[-1].code, edited[0].code) == ["./helper.py"]
    assert outcome.edited == ["./helper.py"]
    again = measure(project)
    assert (again.measured, again.reused) == (0, 2)
    (project / "helper.py").write_text(HELPER.format(3))
    anew = measure(project, processes=1)
    assert (anew.measured, anew.reused) == (1, 0)
    assert ran(again) == ran(outcome) != ran(anew)
    never_rests = measure(project, editing(edit, most=99)[1], processes=1, fresh=True)
    assert (never_rests.measured, never_rests.edited) == (3, ["./helper.py"])


@pytest.mark.nightly
def test_a_variable_and_a_file_that_are_declared_are_part_of_the_code(project, monkeypatch):
    def counts(**options):
        outcome = measure(project, processes=1, name="Configured", **options)
        return outcome.measured, outcome.reused, outcome.unexplained

    monkeypatch.delenv("HARNESS_MODE", raising=False)
    assert counts() == (1, 0, [])
    monkeypatch.setenv("HARNESS_MODE", "2")
    assert counts() == (1, 0, [])
    np.save(project / "weights.npy", np.full(8, 2, "float32"))
    assert counts() == (1, 0, [])
    assert counts() == (0, 1, [])
    text = next((project / "results").rglob("*.jsonl")).read_text()
    assert '"env:HARNESS_MODE":"unset"' in text
    assert '"env:HARNESS_MODE":"2"' not in text, "a value may be secret"
    # What is not declared is not seen, but its program is.
    monkeypatch.setenv("HARNESS_MORE", "1")
    assert counts() == (0, 1, [])
    assert counts(fresh=True) == (1, 0, ["edited.Configured"])
    frame = everything(project / "results")
    of_trace = frame[(frame["workload"] == "edited.Configured") & (frame["stage"] == "trace")]
    assert list(of_trace["reason"]) == [PROGRAM_CHANGED]


@pytest.mark.nightly
def test_a_file_that_changes_during_the_sweep_has_what_read_it_before_measured_again(project):
    def edit(number):
        np.save(project / "weights.npy", np.full(8, 2, "float32"))

    outcome = measure(project, editing(edit)[1], name="Configured")
    assert (outcome.measured, outcome.edited) == (3, ["./weights.npy"])
    found = ran(outcome, "./weights.npy")
    assert len(found - {code.EDITED}) == len(found) == 1


@pytest.mark.nightly
def test_what_is_from_the_future_was_neither_edited_while_it_ran_nor_measured_since_then(project):
    """The clock was ahead when a file was written or a record made, or is behind now."""
    later_s = time.time() + 3_600
    os.utime(project / "weights.npy", (later_s, later_s))
    outcome = measure(project, processes=1, name="Configured")
    assert (outcome.measured, outcome.edited) == (1, [])
    (file,) = (project / "results").rglob("*.jsonl")
    records = Store(file).read()
    for one in records:
        one.started_at_ms += 3_600_000
    file.unlink()
    Store(file).append(records)
    for since_ms, counts in ((0, (0, 1)), (int(time.time() * 1000), (1, 0))):
        again = measure(project, processes=1, name="Configured", since_ms=since_ms)
        assert (again.measured, again.reused) == counts
