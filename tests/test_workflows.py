"""The workflows fit their schema, hold nothing unsafe, and their scripts do what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repositories import git

HERE = Path(__file__).parents[1] / ".github"
WORKFLOWS = sorted((HERE / "workflows").glob("*.yml"))
ACTIONS = sorted((HERE / "actions").glob("*/action.yml"))
SCRIPTS = HERE / "scripts"
BESIDE = Path(sys.executable).parent


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{BESIDE}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{name} is not installed: pip install -e '.[dev]'")
    return found


def schema(kind: str, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [tool("check-jsonschema"), "--builtin-schema", f"vendor.github-{kind}"]
    return subprocess.run([*command, *map(str, files)], capture_output=True, text=True)


def zizmor(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [tool("zizmor"), "--offline", "--no-progress", str(folder)]
    return subprocess.run(command, capture_output=True, text=True)


def test_workflows_and_actions_fit_their_schema():
    assert {file.name for file in WORKFLOWS} == {"ci.yml", "docs.yml", "nightly.yml", "release.yml"}
    for kind, files in (("workflows", WORKFLOWS), ("actions", ACTIONS)):
        done = schema(kind, *files)
        assert done.returncode == 0, done.stdout


def test_the_linter_finds_nothing_unsafe():
    done = zizmor(HERE)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("        with:\n          persist-credentials: false\n", "", "artipacked"),
        ("permissions:\n      contents: read", "permissions: write-all", "excessive-permissions"),
        ("run: .ci/run", 'run: echo "${{ github.head_ref }}"', "template-injection"),
        ("@3d3c42e5aac5ba805825da76410c181273ba90b1", "@v7", "unpinned-uses"),
    ],
)
def test_the_linter_would_notice(tmp_path, right, wrong, said):
    text = (HERE / "workflows" / "ci.yml").read_text()
    assert right in text
    spoilt = tmp_path / ".github" / "workflows" / "ci.yml"
    spoilt.parent.mkdir(parents=True)
    spoilt.write_text(text.replace(right, wrong))
    done = zizmor(tmp_path / ".github")
    assert done.returncode != 0
    assert said in done.stdout


def test_the_schema_would_notice(tmp_path):
    spoilt = tmp_path / "ci.yml"
    spoilt.write_text((HERE / "workflows" / "ci.yml").read_text().replace("runs-on:", "run-on:"))
    assert schema("workflows", spoilt).returncode != 0


# The branch of results


def results(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPTS / "results.sh"), *arguments]
    environment = {**os.environ, "TRIES": "3"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def clones(tmp_path):
    """Two clones of one repository, a machine each."""
    origin = tmp_path / "origin.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
    first, second = tmp_path / "first", tmp_path / "second"
    git(tmp_path, "clone", "--quiet", str(origin), str(first))
    (first / "code.py").write_text("pass\n")
    git(first, "checkout", "-q", "-b", "main")
    git(first, "add", ".")
    git(first, "commit", "-q", "-m", "Code")
    git(first, "push", "-q", "origin", "main")
    git(tmp_path, "clone", "--quiet", str(origin), str(second))
    return first, second


def measured(clone: Path, machine: str, night: str) -> None:
    nights = clone / "results" / machine / "nights"
    nights.mkdir(parents=True, exist_ok=True)
    (nights / ".gitignore").write_text("*.log\n*.html\n")
    (nights / f"{night}.json").write_text("{}")
    (nights / f"{night}.log").write_text("said")
    (clone / "results" / "benchmarks.json").write_text(machine)


def test_results_of_many_machines_merge_by_file(clones):
    first, second = clones
    assert "There is no branch results yet." in results(first, "fetch").stdout
    measured(first, "a", "n1")
    done = results(first, "push", "a")
    assert done.returncode == 0, done.stderr
    # The second one has never seen what the first one pushed.
    measured(second, "b", "n1")
    assert results(second, "push", "b").returncode == 0
    measured(first, "a", "n2")
    assert results(first, "push", "a").returncode == 0
    assert results(second, "fetch").returncode == 0
    kept = git(second, "ls-tree", "-r", "--name-only", "origin/results").split()
    assert [name for name in kept if ".gitignore" not in name] == [
        *("a/nights/n1.json", "a/nights/n2.json", "b/nights/n1.json", "benchmarks.json")
    ]
    assert (second / "results" / "a" / "nights" / "n2.json").is_file()
    assert "Nothing new." in results(second, "push", "b").stdout
    assert git(first, "status", "--porcelain") == "?? results/"
    assert git(first, "worktree", "list").count("\n") == 0


def test_a_branch_with_a_link_is_refused(clones):
    first, second = clones
    measured(first, "a", "n1")
    (first / "results" / "a" / "nights" / "n2.json").symlink_to("../../../code.py")
    assert results(first, "push", "a").returncode == 0
    done = results(second, "fetch")
    assert (done.returncode, done.stderr) == (
        1,
        "The branch results holds links, which results never do: a/nights/n2.json\n",
    )
    assert not (second / "results" / "a").exists()


def test_an_origin_that_does_not_answer_is_no_empty_branch(clones, tmp_path):
    first, _ = clones
    git(first, "remote", "set-url", "origin", str(tmp_path / "nowhere"))
    assert results(first, "fetch").returncode not in (0, 1)
    assert results(first).returncode == 2


# The issue


@pytest.fixture
def gh(tmp_path, monkeypatch):
    """A `gh` that only writes down what it is asked: there is no GitHub to ask here."""
    said = tmp_path / "said"
    script = tmp_path / "bin" / "gh"
    script.parent.mkdir()
    script.write_text(
        '#!/bin/sh\necho "$@" >>"$SAID"\n'
        'case "$*" in *--body-file*) cat "$(echo "$@" | sed "s/.*--body-file //")" >>"$SAID";;\n'
        '"issue list"*) echo "$OPEN";; esac\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SAID", str(said))
    return said


@pytest.mark.parametrize(
    ("number", "asked"), [("", "issue create --title"), ("7", "issue comment 7")]
)
def test_one_issue_is_opened_or_updated(tmp_path, gh, monkeypatch, number, asked):
    monkeypatch.setenv("OPEN", number)
    for machine in ("a", "b"):
        folder = tmp_path / "nights" / f"night-{machine}"
        folder.mkdir(parents=True)
        (folder / "issue.md").write_text(f"table of {machine}\n" + "x" * 40000)
    subprocess.run([SCRIPTS / "issue.sh", tmp_path / "nights"], check=True, capture_output=True)
    text = gh.read_text()
    assert text.count("issue create") + text.count("issue comment") == 1
    assert asked in text
    assert "table of a" in text
    assert "The rest is in the summaries of the run." in text
    assert len(text) < 65536


def test_no_issue_without_something_slower(tmp_path, gh):
    (tmp_path / "nights").mkdir()
    done = subprocess.run(
        [SCRIPTS / "issue.sh", tmp_path / "nights"], check=True, capture_output=True, text=True
    )
    assert done.stdout == "Nothing is slower.\n"
    assert not gh.exists()
