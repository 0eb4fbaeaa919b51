"""Measuring processes that are forked: what they say, and what is left when something is killed."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import jax
import msgspec
import psutil
import pytest

from harness.measure import parent
from harness.measure.parents import Parents
from harness.program.facts import BUILT
from harness.stages.registry import STAGES
from tests.measure.test_child import wait_for
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")
Printing = workload("bad", "Printing")
Drawing = workload("bad", "Drawing")
TIMES = ("samples_ns", "cpu_ns", "programs_ns")


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The outcomes of one sweep with two forked processes, and of one with one that is not."""
    folder = tmp_path_factory.mktemp("both")
    return [
        sweep([Printing, Scale], folder / "forked", "2x1", seed=7),
        sweep([Scale], folder / "fresh", "1x1", seed=7, forked=False),
    ]


def of(outcome, name):
    found = [record for record in outcome.records if record.workload == name]
    return sorted(found, key=lambda record: (record.replicate, str(record.axes)))


def test_the_first_of_each_number_starts_by_itself_and_the_others_have_a_parent_of_their_own(both):
    forked, _ = both
    first = of(forked, "bad.Printing")
    assert {(record.status, record.parent) for record in first} == {("ok", "")}
    assert {record.not_forked for record in first} == {
        "it is the first, and tells what a process pays once"
    }
    others = of(forked, "small.Scale")
    assert [record.parent.rpartition("/")[2] for record in others] == ["1", "1", "2", "2"]
    assert {record.not_forked for record in others} == {""}
    assert len(of(forked, "process")) == 2
    assert len(of(forked, "reference")) == 4


def test_the_order_of_visits_comes_again_with_its_seed(both):
    forked, fresh = (
        [(r.replicate, r.axes) for r in one.records if r.workload == "small.Scale"] for one in both
    )
    assert forked[:2] == fresh


def test_a_forked_process_measures_the_same_program_with_the_same_evidence(both):
    cases, again = (of(outcome, "small.Scale") for outcome in both)
    for forked, fresh in zip(cases[:2], again, strict=True):
        assert forked.parent
        assert not fresh.parent
        assert not fresh.not_forked
        for field in ("key", "fingerprint", "code", "environment", "status", "reason"):
            assert getattr(forked, field) == getattr(fresh, field), field
        facts = [[getattr(one.facts, name) for name in BUILT] for one in (forked, fresh)]
        assert facts[0] == facts[1]
        assert set(forked.stages) == set(fresh.stages)
        stages = [
            {
                name: {k: v for k, v in msgspec.structs.asdict(stage).items() if k not in TIMES}
                | {"count": len(stage.samples_ns)}
                for name, stage in one.stages.items()
                if STAGES[name].step in ("build", "compile")  # the others make many calls
            }
            for one in (forked, fresh)
        ]
        assert stages[0] == stages[1]


def pipes():
    """Return the pipes that this process has open."""
    found = set()
    for file in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # of this very look
            found.add(os.readlink(file))
    return {name for name in found if name.startswith("pipe:")}


@pytest.mark.nightly
def test_siblings_draw_other_numbers_and_leave_no_pipe_open(tmp_path):
    before = pipes()
    outcome = sweep([Printing, Drawing, workload("bad", "DrawingToo")], tmp_path, first_calls=0)
    (one,), (other,) = (of(outcome, f"bad.{name}") for name in ("Drawing", "DrawingToo"))
    assert one.parent == other.parent != ""
    assert one.fingerprint != other.fingerprint
    assert pipes() == before


def test_where_a_fork_is_unsafe_the_reason_is_said(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=[600], name='beside', daemon=True).start()"
    )
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with Parents() as parents:
        found = [parents.find("a sweep", 0, variables, lambda: None) for _ in range(3)]
    first, *others = found
    assert first == "it is the first, and tells what a process pays once"
    assert others == ["threads run as soon as JAX is imported: beside"] * 2
    jax.devices()
    assert parent._unsafe(0) == "a back end of JAX is awake as soon as JAX is imported"


SWEEP = """
import pathlib, sys
from tests.sweeps import sweep, workload
both = workload("bad", "Printing"), workload("small", "Scale")
sweep(both, pathlib.Path(sys.argv[1]), "99x1")
"""


@pytest.mark.usefixtures("fresh_processes")
def test_with_a_killed_sweep_the_parents_and_what_they_forked_are_gone(tmp_path):
    def two():
        below = psutil.Process(run.pid).children(recursive=True)
        return len(below) == 2 and below

    with subprocess.Popen([sys.executable, "-c", SWEEP, str(tmp_path)]) as run:
        below = wait_for(two, 120)
        run.kill()
    assert below, "no process was forked"
    _, alive = psutil.wait_procs(below, timeout=20)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.nightly
def test_a_killed_parent_costs_what_it_was_measuring_and_another_takes_its_place(tmp_path):
    parents = []

    def kill_the_first(progress):
        if parents or progress.record is None or not progress.record.parent:
            return
        for one in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it ends just now
                if one.name() == "harness.measure.parent"[-15:]:  # see `forks`
                    one.kill()
                    parents.append(one)

    later = workload("bad", "Skipping")
    outcome = sweep([Printing, Scale, later], tmp_path, on_progress=kill_the_first)
    assert parents
    found = of(outcome, "small.Scale")
    assert len(found) == 2
    for one in found:  # the second case may be done before it is noticed, or another process's
        assert one.parent[-2:] in ("/1", "/2")
        assert one.status == "ok" or one.reason.startswith("killed by SIGKILL")
    after = [one for one in of(outcome, "bad.Skipping") if one.status != "skipped"]
    assert [(one.status, one.parent[-2:]) for one in after] == [("ok", "/2")]


def test_a_measuring_process_makes_no_benchmarks_for_asv(tmp_path):
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").write_text("from harness.asv import suite\n\nsuite.install()\n")
    (folder / "plain.py").write_text(
        "from harness import Workload, spec\n"
        "class Plain(Workload):\n"
        "    def inputs(self):\n"
        "        raise ValueError(str([name for name in dir(self) if name.startswith('track_')]))\n"
        "    @staticmethod\n"
        "    def function(x):\n"
        "        return x\n"
    )
    command = [sys.executable, "-m", "harness", "run", "Plain", "--effort", "1x1"]
    command += ["--target", "cpu", "--benchmarks", str(folder), "--results", str(tmp_path / "r")]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    assert "ValueError: [] (at plain.py:4)" in said
