"""What a sweep makes of code that is edited: between two of them, and in the middle of one."""

import sys

import pytest

from harness.declare import code
from harness.declare.discovery import discover
from harness.engine.context import Options, local_context
from harness.engine.sweep import sweep
from harness.stages.sampling import effort

WORKLOAD = """\
from harness import Workload, spec
from helper import function as helped


class Helped(Workload):
    sweep = {"size": [8]}
    function = staticmethod(helped)

    def inputs(self, size):
        return spec((size,))
"""
HELPER = "def function(x):\n    return x + {}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "edited_suite").mkdir()
    (tmp_path / "edited_suite/edited.py").write_text(WORKLOAD)
    (tmp_path / "helper.py").write_text(HELPER.format(1))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield tmp_path
    for name in ("edited_suite.edited", "edited_suite", "helper"):
        sys.modules.pop(name, None)


def measure(project, on_progress=lambda progress: None, processes=2):
    workloads = discover(project / "edited_suite").workloads
    context = local_context(project / "results", project)
    options = Options(effort(f"{processes}x1"), targets=("cpu",))
    return sweep(workloads, context, options, on_progress)


def ran(outcome):
    return {r.code["./helper.py"] for r in outcome.records if r.workload == "edited.Helped"}


def test_edited_code_is_measured_anew_and_the_same_code_is_not(project):
    first = measure(project, processes=1)
    assert (first.measured, first.reused) == (1, 0)
    again = measure(project, processes=1)
    assert (again.measured, again.reused) == (0, 1)
    (project / "helper.py").write_text(HELPER.format(2))
    edited = measure(project, processes=1)
    assert (edited.measured, edited.reused) == (1, 0)
    assert ran(again) == ran(first) != ran(edited)


def test_an_edit_between_two_processes_has_the_first_measured_again(project):
    def edit(progress):
        if progress.record and not edited:
            edited.append(progress.record)
            (project / "helper.py").write_text(HELPER.format(2))

    edited = []
    outcome = measure(project, edit)
    assert outcome.measured == 3
    assert len(ran(outcome)) == 1
    assert code.conflicts(outcome.records[-1].code, edited[0].code) == ["./helper.py"]
    assert outcome.edited == ["./helper.py"]


def test_code_that_never_rests_is_measured_and_said(project):
    def edit(progress):
        if progress.record:
            edits.append(progress.record)
            (project / "helper.py").write_text(HELPER.format(len(edits) + 1))

    edits = []
    outcome = measure(project, edit, processes=1)
    assert outcome.measured == 3
    assert outcome.edited == ["./helper.py"]
