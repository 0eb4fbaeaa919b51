"""A copy of the project is measured: what it holds, what it is called, and that it goes again."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.declare.code import folder_of
from harness.engine import snapshot as module
from harness.engine.snapshot import snapshot
from harness.errors import UsageError
from harness.records.schema import Problems, read_file
from tests.forks import harness

FILES = {
    "suite/__init__.py": "",
    "suite/work.py": """\
from pathlib import Path

import elsewhere
import helper
from harness import Workload, spec


class Helped(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return helper.function(x)


class Raises(Helped):
    @staticmethod
    def function(x):
        raise ValueError(f"{Path(__file__)} in {Path.cwd()}")
""",
    "lib/helper.py": "def function(x):\n    return x + 1\n",
    "../elsewhere.py": "VALUE = 1\n",
    "notes/data.txt": "data",
    ".git/HEAD": "ref",
    ".venv/pyvenv.cfg": "",
    "env/pyvenv.cfg": "",
    "env/big.py": "",
    ".cache/CACHEDIR.TAG": "",
    "suite/__pycache__/work.pyc": "",
    "results/box/records/some.jsonl": "",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(folder)
    path = os.pathsep.join([str(folder / "lib"), str(tmp_path)])
    monkeypatch.setenv("PYTHONPATH", path)
    return folder


def copies(project):
    return list((project.parent / "scratch").glob("harness-scratch-*"))


def test_a_copy_holds_sources_and_no_results_environments_or_caches(project):
    (project / "suite/link.py").symlink_to(project / "lib/helper.py")
    (project / "outside").symlink_to(project.parent)
    with snapshot(project, project / "results") as copy:
        held = {str(path.relative_to(copy.root)) for path in copy.root.rglob("*") if path.is_file()}
        assert held >= {"suite/work.py", "lib/helper.py", "notes/data.txt", "suite/link.py"}
        assert not {name for name in held if name.startswith((".git", "env", ".", "results"))}
        assert (copy.root / "suite/link.py").resolve() == copy.root / "lib/helper.py"
        assert (copy.root / "outside").resolve() == project.parent
        assert Path(copy.folder) == copy.root
    assert copies(project) == []


def test_a_project_that_is_too_large_is_refused_with_what_is_largest(project, monkeypatch):
    (project / "notes/data.txt").write_bytes(bytes(3 * 2**20))
    monkeypatch.setattr(module, "LIMIT_BYTES", 2**20)
    said = r"holds 3 MiB, more than the 1 MiB that are copied; the largest: notes 3 MiB, .* Move"
    with pytest.raises(UsageError, match=said), snapshot(project, project / "results"):
        pass
    assert copies(project) == []


def test_a_copy_whose_process_is_gone_is_removed_and_no_other(project):
    for name in ("gone", "used"):
        (project.parent / f"scratch/harness-scratch-{name}/tree").mkdir(parents=True)
    lock = os.open(project.parent / "scratch/harness-scratch-used", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with snapshot(project, project / "results"):
        pass
    os.close(lock)
    assert [path.name for path in copies(project)] == ["harness-scratch-used"]


def begun(effort, *more):
    """Start a sweep and return it when it has stored its first record."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, "-m", "harness", "run", "Helped", "--effort", effort, *more]
    command += ["--benchmarks", "suite", "--results", "results", "--from-snapshot"]
    before = stored()
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while stored() == before:
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    return running


def stored():
    return sum(f.stat().st_size for f in Path("results").glob("*/records/*commit*.jsonl"))


def records(project):
    files = (project / "results").glob("*/records/*commit*.jsonl")
    found = [one for file in files for one in read_file(file, Problems())]
    return [one for one in found if one.workload.startswith("work.")]


def test_an_edit_during_the_sweep_changes_nothing_and_an_ordinary_run_reuses_it(project):
    running = begun("2x1")
    helper = project / "lib/helper.py"
    before = helper.read_text()
    helper.write_text("def function(x):\n    return x + 2\n")
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 0
    (count,) = re.findall(r"(\d+) measured, 0 measured before and reused, 0 failed", said)
    assert "Not in the snapshot, measured where they are: elsewhere" in said
    assert copies(project) == []
    first = records(project)
    assert len({one.code["./lib/helper.py"] for one in first}) == 1
    assert all(one.snapshot for one in first)
    helper.write_text(before)
    again = ("--benchmarks", "suite", "--effort", "2x1")
    done = harness("run", "Helped", *again, cwd=project)
    assert f"0 measured, {count} measured before and reused" in done.stdout, done.stderr
    failed = harness("run", "Raises", "--from-snapshot", *again, cwd=project)
    assert failed.returncode == 3
    assert f"ValueError: {project}/suite/work.py in {project}" in failed.stdout
    assert "harness-scratch" not in failed.stdout + failed.stderr


def test_the_copy_goes_after_an_interrupt_and_that_of_a_killed_run_with_the_next(project):
    running = begun("40x1")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert (running.returncode, copies(project)) == (130, [])
    running = begun("40x1", "--fresh")
    running.kill()
    running.communicate(timeout=60)
    assert copies(project) != []
    with snapshot(project, project / "results"):
        assert len(copies(project)) == 1
    assert copies(project) == []


def test_it_is_no_option_of_a_fleet(command):
    code, _, said = command("run", "--from-snapshot", "--on", "tcp://nowhere:1")
    assert code == 2
    assert "--from-snapshot does not work with --on" in said


def test_the_project_of_a_folder_of_benchmarks_is_its_repository_or_the_folder_above(tmp_path):
    assert folder_of(tmp_path / "a/benchmarks") == tmp_path / "a"
    (tmp_path / ".git").mkdir()
    assert folder_of(tmp_path / "a/benchmarks") == tmp_path
