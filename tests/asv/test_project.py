"""What a night reads in asv's configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.asv.project import AsvProject
from harness.errors import UsageError
from harness.nightly.night import recipe_for


def test_the_environments_of_a_project_in_a_subfolder_hold_that_project(tmp_path):
    mine = tmp_path / "packages" / "mine"
    mine.mkdir(parents=True)
    conf = {"version": 1, "project": "p", "repo": "../..", "repo_subdir": "packages/mine"}
    (mine / "asv.conf.json").write_text(json.dumps(conf))
    project = AsvProject.read(mine / "asv.conf.json")
    assert project.repo.resolve() == tmp_path
    assert recipe_for(project, None, (), "").repository.resolve() == mine


def test_a_configuration_of_asvs_other_name_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"asv\.conf\.json does not exist"):
        AsvProject.read(Path("asv.conf.json"))
    Path("asv.conf.jsonc").write_text('{"version": 1, "project": "p", "repo": "."} // mine')
    assert AsvProject.read(Path("asv.conf.json")).config == "asv.conf.jsonc"
