"""The environments that asv makes itself, one per JAX release, and Pythons that do not start."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from asv import util

from tests.asv.project import JAX, MACHINE, PYTHON, SCALE, Installed, Project, copied

REPOSITORY = Path(__file__).parents[2]
MANAGED = f"virtualenv-py{PYTHON}-jax{JAX}"


def test_a_python_on_path_that_does_not_start_counts_as_absent(tmp_path):
    project = Project(
        tmp_path, {"scale": SCALE}, environment_type="virtualenv", pythons=["3.99"], matrix={}
    )
    shim = tmp_path / "shims" / "python3.99"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho 'python3.99: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    path = f"{shim.parent}:{project.environment['PATH']}"
    said = project.asv("run", "--quick", code=1, PATH=path)
    assert "No executable found for python 3.99" in said
    assert "No environments selected" in said
    assert "Traceback" not in said


class Copy(Installed):
    """This repository, copied, with its own configuration for one Python and one JAX."""

    def __init__(self, folder: Path) -> None:
        copied(REPOSITORY, folder / "project", "harness", "benchmarks")
        own = util.load_json(REPOSITORY / "asv.conf.json", js_comments=True)
        own["pythons"], own["exclude"] = [PYTHON], []
        own["matrix"]["req"]["jax"] = [JAX]
        super().__init__(folder, {}, **own)

    def write(self, name: str, text: str) -> None:
        if name != "benchmarks/__init__.py":
            super().write(name, text)


@pytest.mark.slow
@pytest.mark.replay
@pytest.mark.timeout(600)
def test_a_plain_run_builds_the_environment_and_names_results_and_records_after_it(tmp_path):
    project = Copy(tmp_path)
    if not shutil.which(f"python{PYTHON}", path=project.environment["PATH"]):
        pytest.skip(f"asv looks for python{PYTHON} on PATH, and there is none")
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed"]
    index = subprocess.run(
        [*pip, f"jax=={JAX}"], env=project.environment, capture_output=True, text=True
    )
    if index.returncode:
        pytest.skip(f"no package index answers for jax {JAX}: {index.stderr.strip()[-200:]}")
    project.asv("run", "--quick", "-b", "Smallest", timeout_s=550)
    found = project.result("startup.Smallest.track_import", env=MANAGED)
    assert found["result"][0] > 0.05
    record, *others = project.records("startup.Smallest")
    assert not others
    assert (record.env, record.commit, record.machine) == (MANAGED, project.head, MACHINE)
    assert (record.jax, record.effort, record.status) == (JAX, "quick", "ok")
