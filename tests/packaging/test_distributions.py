"""The source distribution and the wheel hold what they should, and no more."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import zipfile
from email.parser import Parser

import pytest

import harness
from tests.packaging.building import ROOT, BuildError, build, check

pytestmark = pytest.mark.slow


def test_the_standard_checks_pass(built):
    """Among them that the wheel holds what git tracks of the package; `build` makes it out of the
    source distribution."""
    check(*built)


def test_the_check_would_notice_a_file_that_is_missing(built, tmp_path):
    source, wheel = built
    spoilt = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(spoilt, "w") as new:
        for each in old.infolist():
            if each.filename != "harness/targets/data/h200.pbtxt":
                new.writestr(each, old.read(each))
    with pytest.raises(BuildError, match=r"differ in harness/targets/data/h200\.pbtxt: see"):
        check(source, spoilt)


def test_the_source_distribution_holds_the_repository_without_results(built):
    with tarfile.open(built[0]) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    assert {"LICENSE", "CHANGELOG.md", "docs/method.md", "tests/conftest.py"} <= inside
    assert "benchmarks/normalization.py" in inside
    unwanted = ("results", ".git/", ".venv", "build/", "dist/")
    assert [name for name in inside if name.startswith(unwanted) or name.endswith(".pyc")] == []


def test_the_address_of_the_repository_goes_into_the_metadata(tmp_path):
    """In a small clone: the real one takes seconds more, and shows the same."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "harness/__init__.py"):
        (clone / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.com"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "All"]):
        subprocess.run(["git", *words], cwd=clone, check=True)
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
