"""What pip is named for this harness and its extras, from wherever it was installed."""

import shlex
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from harness.records import installation

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", ["figures", "parquet", "fleet"])
def test_an_extra_is_installed_by_its_packages(extra):
    pip, install, *packages = shlex.split(installation.command_for(extra))
    assert (pip, install) == ("pip", "install")
    assert {*map(Requirement, packages)} == {*map(Requirement, EXTRAS[extra])}


@pytest.mark.parametrize(
    ("noted", "elsewhere"),
    [
        (None, "jax-harness"),
        ('{"url": "file:///clone", "dir_info": {}}', ""),
        (
            '{"url": "https://host/it", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "jax-harness @ git+https://host/it@abc",
        ),
    ],
    ids=["from an index", "from a clone", "from a repository"],
)
def test_another_machine_installs_what_it_can_reach(noted, elsewhere, monkeypatch, tmp_path):
    folder = tmp_path / "jax_harness-1.dist-info"
    folder.mkdir()
    if noted:
        (folder / "direct_url.json").write_text(noted)
    own = metadata.Distribution.at(folder)
    monkeypatch.setattr(metadata, "distribution", lambda name: own)
    assert installation.elsewhere() == elsewhere


def test_a_harness_that_is_only_on_the_path_is_installed_from_its_folder(monkeypatch):
    monkeypatch.setattr(installation, "NAME", "jax-harness-that-nobody-installed")
    assert installation.command_for("figures") == f"pip install -e '{ROOT}[figures]'"
    assert installation.elsewhere() == ""
