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


def test_what_asv_may_know_one_day_is_no_slip(tmp_path):
    file = tmp_path / "asv.conf.json"
    file.write_text('{"repo": ".", "version": 1, "build_cache_size": 9, "colour": "red"} // mine')
    assert AsvProject.read(file).benchmarks == tmp_path / "benchmarks"
