"""What pyproject.toml says, without building anything."""

from __future__ import annotations

import re
import tomllib

import pytest

import harness
from tools.building import ROOT, BuildError, absolute, latest, released
from tools.extras import accelerator_packages, declared, supported

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_stands_in_one_place_and_the_changelog_begins_with_it():
    assert PROJECT["dynamic"] == ["version"]
    heading = latest((ROOT / "CHANGELOG.md").read_text())
    assert heading.split(" (")[0] == harness.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+( \(unreleased\))?", heading)


@pytest.mark.parametrize(
    ("tag", "changelog", "said"),
    [
        ("v9.9.9", "# Changelog\n", "the tag has to be v"),
        (harness.__version__, "# Changelog\n", "the tag has to be v"),
        (f"v{harness.__version__}", f"## {harness.__version__} (unreleased)\n", "to release"),
        (f"v{harness.__version__}", "# Changelog\n", "to release"),
    ],
)
def test_what_does_not_fit_together_is_not_released(tmp_path, tag, changelog, said):
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    with pytest.raises(BuildError, match=said):
        released(tag, tmp_path)


def test_a_dated_release_fits_its_tag(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {harness.__version__}\n\nText.\n")
    released(f"v{harness.__version__}", tmp_path)


def test_the_classifiers_name_the_pythons_that_are_supported():
    assert f">={supported()[0]}" == PROJECT["requires-python"]
    assert supported() == ["3.11", "3.12", "3.13", "3.14"]


def test_no_dependency_is_for_gpus():
    assert accelerator_packages(PROJECT["dependencies"]) == []
    assert accelerator_packages(["cupy-cuda13x", "nvidia-nccl-cu13", "jax-cuda13-plugin==1"]) == [
        *("cupy-cuda13x", "nvidia-nccl-cu13", "jax-cuda13-plugin==1")
    ]
    assert accelerator_packages(["jax", "jaxlib", "libtpu"]) == ["libtpu"]


def test_the_readme_tells_of_every_extra_and_what_is_told_is_there():
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| (`[^|]+`) \|", readme, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(declared())
    files = [ROOT / "README.md", *ROOT.glob("harness/**/*.py"), *ROOT.glob("docs/**/*.md")]
    told = {
        (file.name, extra)
        for file in files
        for found in re.findall(r"jax-harness\[([\w,]+)\]", file.read_text())
        for extra in found.split(",")
    }
    assert ("report.md", "figures") in told
    assert {each for each in told if each[1] not in declared()} == set()


def test_links_of_the_readme_lead_to_files():
    text = absolute((ROOT / "README.md").read_text(), "https://example.com/x", "v1")
    found = re.findall(r"https://example\.com/x/(?:blob|raw)/v1/([^)#]+)", text)
    assert len(found) > 10
    assert [name for name in found if not (ROOT / name).is_file()] == []


def test_only_relative_links_are_made_absolute():
    text = "[a](docs/a.md#b) ![c](d.svg) [e](https://example.org) [f](#g)"
    assert absolute(text, "https://example.com/x", "v1") == (
        "[a](https://example.com/x/blob/v1/docs/a.md#b) ![c](https://example.com/x/raw/v1/d.svg) "
        "[e](https://example.org) [f](#g)"
    )
