"""The steps of the nightly workflow that `harness init` writes, with a branch of results."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.init.package import Package
from tests.repositories import git

FETCH, KEEP = "Results of earlier nights", "Keep the results, also of a night that was cut off"


class Repository:
    """A package on a machine of its own, and the repository that it is pushed to."""

    def __init__(self, folder: Path) -> None:
        self.package = Package(folder, at="mine")
        self.package.init()
        # There is no GitHub to log in to.
        self.package.write(self.package.bin / "gh", "#!/bin/sh\n")
        (self.package.bin / "gh").chmod(0o755)
        self.temp = folder / "temp"
        self.origin = folder / "origin.git"
        self.package.run(f"git init --quiet --bare {self.origin}")
        self.package.run(f"git remote add origin {self.origin} && git add --all {self.package.top}")
        self.package.run("git commit --quiet -m Benchmarks && git push --quiet origin trunk")

    def step(self, name: str, code: int = 0) -> str:
        machine = {"MACHINE": "m", "RUNNER_TEMP": str(self.temp)}
        return self.package.step("benchmarks-mine-nightly.yml", name, code, **machine)

    def begin(self) -> None:
        """Begin a job: a runner empties its folder, and the checkout is as it was pushed."""
        shutil.rmtree(self.temp, ignore_errors=True)
        self.temp.mkdir()
        shutil.rmtree(self.package.folder / "results", ignore_errors=True)
        self.step(FETCH)

    def measure(self, night: str) -> None:
        nights = self.package.folder / "results" / "m" / "nights"
        self.package.write(nights / ".gitignore", "*.log\n*.html\n")  # as the harness writes it
        self.package.write(nights / f"{night}.json", "{}")
        self.package.write(nights / night / "report.html", "large")

    def kept(self) -> list[str]:
        names = git(self.origin, "ls-tree", "-r", "--name-only", "results").split()
        others = [name for name in names if not name.startswith("mine/results/m/nights/")]
        return [Path(name).name for name in names if name.endswith(".json")] + others


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_each_night_finds_the_earlier_ones_and_adds_itself(repository):
    for number in (1, 2, 3):  # the first one makes the branch
        repository.begin()
        there = sorted(repository.package.folder.glob("results/m/nights/*.json"))
        assert [file.stem for file in there] == [f"n{n}" for n in range(1, number)]
        repository.measure(f"n{number}")
        repository.step(KEEP)
    assert repository.kept() == ["n1.json", "n2.json", "n3.json"]


def test_a_push_of_somebody_else_meanwhile_loses_no_night(repository):
    repository.begin()
    repository.measure("n1")
    repository.step(KEEP)
    repository.begin()
    repository.measure("n2")
    other = repository.temp / "other"
    repository.package.run(
        f"git clone --quiet --branch results {repository.origin} {other} && cd {other} && "
        "echo >theirs && git add theirs && git commit --quiet -m Theirs && git push --quiet"
    )
    repository.step(KEEP)
    assert repository.kept() == ["n1.json", "n2.json", "theirs"]


def test_an_origin_that_does_not_answer_ends_the_job_before_it_measures(repository):
    repository.temp.mkdir()
    repository.package.run(f"git remote set-url origin {repository.temp}/nowhere")
    assert "does not appear to be a git repository" in repository.step(FETCH, code=128)
