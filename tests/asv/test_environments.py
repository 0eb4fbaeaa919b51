"""What a night reads in asv's configuration, and the environments that asv makes of it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from asv import util

from harness.asv.project import AsvProject
from harness.errors import UsageError
from tests.asv.project import JAX, MACHINE, PYTHON, SCALE, Installed, Project, copied

REPOSITORY = Path(__file__).parents[2]
MANAGED = f"virtualenv-py{PYTHON}-jax{JAX}"


@pytest.mark.nightly
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
    asked = {"env": project.environment, "capture_output": True, "text": True}
    index = subprocess.run([*pip, f"jax=={JAX}"], **asked)
    if index.returncode:
        pytest.skip(f"no package index answers for jax {JAX}: {index.stderr.strip()[-200:]}")
    project.asv("run", "--quick", "-b", "Smallest", timeout_s=550)
    found = project.result("startup.Smallest.track_import", env=MANAGED)
    assert found["result"][0] > 0.05
    record, *others = project.records("startup.Smallest")
    assert not others
    assert (record.env, record.commit, record.machine) == (MANAGED, project.head, MACHINE)
    assert (record.jax, record.effort, record.status) == (JAX, "quick", "ok")


def test_the_environments_of_a_project_in_a_subfolder_hold_that_project(tmp_path):
    mine = tmp_path / "packages" / "mine"
    mine.mkdir(parents=True)
    conf = {"version": 1, "project": "p", "repo": "../..", "repo_subdir": "packages/mine"}
    conf |= {"build_cache_size": 9, "colour": "red"}  # asv may know that one day
    (mine / "asv.conf.json").write_text(f"{json.dumps(conf)} // mine")
    project = AsvProject.read(mine / "asv.conf.json")
    assert project.benchmarks == mine / "benchmarks"
    assert project.repo.resolve() == tmp_path
    assert project.package.resolve() == mine


def test_a_configuration_of_asvs_other_name_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"asv\.conf\.json does not exist"):
        AsvProject.read(Path("asv.conf.json"))
    Path("asv.conf.jsonc").write_text('{"version": 1, "project": "p", "repo": "."} // mine')
    assert AsvProject.read(Path("asv.conf.json")).config == "asv.conf.jsonc"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"repo": "."', "Unexpected end of input"),
        ('{"repo": "." "version": 1}', "Unexpected"),
        ("[]", "asv cannot read"),
        ('{"version": 1}', "No repo specified"),
        (
            '{"version": 1, "repo": ".", "benchmarks_dir": "b"}',
            "no 'benchmarks_dir'. Did you mean 'benchmark_dir'",
        ),
        ('{"version": 1, "repo": ".", "results_dir": 5}', "results_dir is 5; expected a text"),
        ('{"version": 1, "repo": ".", "matrix": []}', "matrix is []; expected an object"),
        ('{"version": 1, "repo": ["."]}', "repo is ['.']; expected a text"),
    ],
)
def test_a_slip_in_the_configuration_is_one_line(tmp_path, text, said):
    file = tmp_path / "asv.conf.json"
    file.write_text(text)
    with pytest.raises(UsageError) as raised:
        AsvProject.read(file)
    assert str(file) in str(raised.value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
