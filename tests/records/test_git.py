"""A folder as it was at another commit."""

import re

import pytest

from harness.errors import UsageError
from harness.records.git import worktree
from tests.repositories import git


def commit(folder, text):
    (folder / "model.py").write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", text)


def test_a_worktree_has_the_submodules_of_its_commit_and_says_what_is_not_here(tmp_path):
    for name in ("model", "library", "project"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "--quiet")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    commit(tmp_path / "model", "first")
    git(tmp_path / "library", *add, str(tmp_path / "model"), "nested")
    commit(tmp_path / "library", "first")
    project = tmp_path / "project"
    git(project, *add, str(tmp_path / "library"), "src")
    update = ("submodule", "--quiet", "update", "--init", "--recursive")
    git(project, "-c", "protocol.file.allow=always", *update)
    commit(project, "first")
    commit(project / "src" / "nested", "second")
    commit(project / "src", "second")
    commit(project, "second")
    for revision, text in (("HEAD~1", "first"), ("HEAD", "second")):
        with worktree(project, revision) as (_, tree, _):
            assert (tree / "src" / "model.py").read_text() == text
            assert (tree / "src" / "nested" / "model.py").read_text() == text
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(project), str(other))
    git(other, "clone", "--quiet", str(tmp_path / "library"), "src")
    with (
        pytest.raises(UsageError, match=re.escape("`git -C src fetch` gets it.")),
        worktree(other, "HEAD"),
    ):
        pass
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", project.as_uri(), str(shallow))
    with pytest.raises(UsageError, match="`git fetch --unshallow`"), worktree(shallow, "HEAD~1"):
        pass


def test_a_worktree_has_the_generated_modules_that_git_ignores(tmp_path):
    (tmp_path / "package").mkdir()
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("_version.py\nbuild/\n")
    commit(tmp_path / "package", "first")
    (tmp_path / "build").mkdir()
    for folder in ("package", "build"):
        (tmp_path / folder / "_version.py").write_text("version = '1'\n")
    commit(tmp_path / "package", "second")
    with worktree(tmp_path, "HEAD~1") as (_, tree, _):
        assert {file.name for file in tree.iterdir()} == {".git", ".gitignore", "package"}
        assert (tree / "package" / "_version.py").read_text() == "version = '1'\n"
