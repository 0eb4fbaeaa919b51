"""The source distribution and the wheel hold what they should, and no more."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser

import pytest

import harness
from tests.repositories import git
from tools.building import ROOT, BuildError, build, check, tracked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="they are built from what git tracks"),
]

PACKAGED = """
from setuptools import Distribution
from setuptools.config.pyprojecttoml import apply_configuration

project = Distribution({"script_name": "setup.py"})
apply_configuration(project, "pyproject.toml")
build = project.get_command_obj("build_py")
build.ensure_finalized()
data = [f"{folder}/{name}" for _, folder, _, names in build.data_files for name in names]
print(*build.get_source_files(), *data, sep="\\n")
"""
"""Prints what setuptools will put into the wheel."""


def test_the_wheel_will_hold_what_git_tracks():
    done = subprocess.run(
        [sys.executable, "-c", PACKAGED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == set(tracked(under="harness"))


@pytest.mark.nightly
def test_the_standard_checks_pass_and_the_source_has_no_results(tmp_path):
    """`build` makes the wheel out of the source distribution."""
    source, wheel = build(tmp_path)
    check(source, wheel)
    with tarfile.open(source) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    assert {"LICENSE", "CHANGELOG.md", "docs/method.md", "tests/conftest.py"} <= inside
    assert "benchmarks/normalization.py" in inside
    unwanted = ("results", "docs/example-results", ".git/", ".venv", "build/", "dist/")
    assert [name for name in inside if name.startswith(unwanted) or name.endswith(".pyc")] == []


def test_the_check_would_notice_a_file_that_is_missing(tmp_path):
    spoilt = tmp_path / "spoilt.whl"
    with zipfile.ZipFile(spoilt, "w") as made:
        for name in tracked(under="harness"):
            if name != "harness/targets/data/h200.pbtxt":
                made.write(ROOT / name, name)
    with pytest.raises(BuildError, match=r"differ in harness/targets/data/h200\.pbtxt: see"):
        check(tmp_path / "none.tar.gz", spoilt)


def test_the_address_of_the_repository_goes_into_the_metadata(tmp_path):
    """In a small clone: the real one takes seconds more, and shows the same."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "harness/__init__.py"):
        (clone / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    for words in ("init -q", "add .", "commit -q -m All"):
        git(clone, *words.split())
    _, wheel = build(tmp_path / "dist", "https://example.com/x", clone)
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [name for name in opened.namelist() if name.endswith("/METADATA")]
        said = Parser().parsestr(opened.read(name).decode())
    tag = f"v{harness.__version__}"
    assert said["Version"] == harness.__version__
    assert "Repository, https://example.com/x" in said.get_all("Project-URL")
    assert f"](https://example.com/x/blob/{tag}/docs/method.md)" in said.get_payload()
    assert f"](https://example.com/x/raw/{tag}/docs/transformer.svg)" in said.get_payload()
    assert (clone / "README.md").read_bytes() == (ROOT / "README.md").read_bytes()
