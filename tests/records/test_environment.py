from __future__ import annotations

import json
import platform
import sys

import jax
import pytest

from harness.errors import UsageError
from harness.records import environment
from harness.records.environment import machine_name
from harness.records.git import Commit, commit_of
from harness.records.store import machine_folder, store_path
from harness.targets.host import host
from tests.repositories import git


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of one commit."""
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2024-02-29T12:00:00+0000")
    folder = tmp_path / "repository"
    (folder / "results").mkdir(parents=True)
    (folder / "code.py").write_text("x = 1\n")
    (folder / "results" / "numbers.json").write_text("[1]\n")
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def commit(folder):
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a commit")


def test_a_commit_has_its_hash_and_date(repository):
    found = commit_of(repository)
    assert found.hash == git(repository, "rev-parse", "HEAD")
    assert found.date_ms == 1709208000_000
    assert found.dirty == ""
    assert commit_of(repository / "results") == found
    git(repository, "checkout", "--quiet", "--detach")
    assert commit_of(repository) == found


def test_a_commit_may_be_named_and_is_then_never_dirty(repository):
    first = commit_of(repository)
    (repository / "code.py").write_text("x = 2\n")
    commit(repository)
    (repository / "code.py").write_text("x = 3\n")
    assert commit_of(repository, "HEAD~1") == first
    assert commit_of(repository).dirty
    assert commit_of(repository, commit_of(repository).hash).dirty == ""
    assert commit_of(repository, "no-such-branch") == Commit()


def test_without_git_a_repository_or_a_commit_there_is_none(repository, tmp_path, monkeypatch):
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "--quiet")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for place in ("new", "", "nowhere"):
        assert commit_of(tmp_path / place) == Commit()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert commit_of(repository) == Commit("", None, "")


def test_the_dirty_digest_follows_the_content(repository):
    seen = [commit_of(repository).dirty]
    for text in ("x = 2\n", "x = 3\n"):
        (repository / "code.py").write_text(text)
        seen.append(commit_of(repository).dirty)
    git(repository, "add", "code.py")
    assert commit_of(repository).dirty == seen[-1]  # staged or not, it is what is measured
    (repository / "code.py").write_text("x = 2\n")
    assert commit_of(repository).dirty == seen[1]
    (repository / "code.py").write_text("x = 1\n")
    git(repository, "add", "code.py")
    assert commit_of(repository).dirty == ""
    assert len(set(seen)) == 3


def test_the_dirty_digest_tells_binary_files_apart(repository):
    (repository / "data.bin").write_bytes(bytes(range(256)))
    commit(repository)
    seen = set()
    for last in (b"\x00", b"\xff"):
        (repository / "data.bin").write_bytes(bytes(range(256)) + last)
        seen.add(commit_of(repository).dirty)
    assert len(seen) == 2
    assert "" not in seen


@pytest.mark.parametrize("name", ["results", "results [of] *", "c*"])
def test_changed_results_do_not_make_the_tree_dirty(repository, name):
    results = repository / name
    results.mkdir(exist_ok=True)
    (results / "numbers.json").write_text("[1, 2]\n")
    commit(repository)
    (results / "numbers.json").write_text("[1, 2, 3]\n")
    assert commit_of(repository).dirty
    assert commit_of(repository, exclude=results).dirty == ""
    assert commit_of(repository / "results", exclude=results).dirty == ""
    (repository / "code.py").write_text("x = 2\n")
    assert commit_of(repository, exclude=results).dirty


def test_results_outside_the_repository_need_no_excluding(repository, tmp_path):
    (repository / "code.py").write_text("x = 2\n")
    assert commit_of(repository, exclude=tmp_path / "results") == commit_of(repository)


# --- names ----------------------------------------------------------------------------------------


def test_the_environments_name_holds_versions_and_no_path(monkeypatch):
    monkeypatch.delenv("ASV_ENV_NAME", raising=False)
    name = environment.env_name()
    assert name == f"existing-py{sys.version_info[0]}.{sys.version_info[1]}-jax{jax.__version__}"
    assert "/" not in name
    assert environment.existing_env_name("3.11", "") == "existing-py3.11"


def test_asvs_name_of_an_environment_is_kept(monkeypatch):
    monkeypatch.setenv("ASV_ENV_NAME", "virtualenv-py3.12-jax0.11.2")
    assert environment.env_name() == "virtualenv-py3.12-jax0.11.2"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder of the test's own, and a host that has a name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HARNESS_MACHINE", raising=False)
    monkeypatch.setattr(platform, "node", lambda: "host-7")
    return tmp_path


@pytest.mark.parametrize(
    ("known", "name"),
    [
        ({"version": 1, "workstation": {}}, "workstation"),
        ({"version": 1, "workstation": {}, "laptop": {}}, "host-7"),
        ({"version": 1, "host-7": {}}, "host-7"),
        ({"version": 1, "workstation": {}, "host-7": {}}, "host-7"),
        ({"version": 1}, "host-7"),
        ([], "host-7"),
        ("torn", "host-7"),
    ],
)
def test_the_machine_is_the_one_that_asv_knows_or_the_host(home, known, name):
    (home / ".asv-machine.json").write_text(json.dumps(known))
    assert machine_name() == name


def test_without_asvs_file_or_with_a_broken_one_the_machine_is_the_host(home):
    assert machine_name() == "host-7"
    (home / ".asv-machine.json").write_text('{"version": 1, "work')
    assert machine_name() == "host-7"


def test_the_machine_may_be_named_outright(home, monkeypatch):
    (home / ".asv-machine.json").write_text(json.dumps({"version": 1, "workstation": {}}))
    monkeypatch.setenv("HARNESS_MACHINE", "fleet-a")
    assert machine_name() == "fleet-a"


def test_a_host_without_a_name_has_one_all_the_same(home, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "")
    assert machine_name() == "localhost"


# --- what a number was taken in -------------------------------------------------------------------


def test_versions_are_those_of_what_is_imported():
    assert environment.versions()["jax"] == jax.__version__
    assert environment.versions()["jaxlib"] == jax.lib.__version__
    assert environment.versions()["python"] == platform.python_version()


@pytest.mark.parametrize("name", ["XLA_FLAGS", "JAX_ENABLE_X64", "NPROC", "PYTHONHASHSEED"])
def test_a_flag_that_reaches_xla_makes_another_identity(monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    before = environment.identity()
    assert before == environment.identity()
    monkeypatch.setenv(name, "1")
    assert environment.flags()[name] == "1"
    assert environment.identity() != before


def test_other_variables_are_nobodys_business(monkeypatch):
    before = environment.identity()
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    assert environment.identity() == before
    assert "SECRET_TOKEN" not in environment.flags()


def test_the_host_is_described():
    found = host()
    assert found["cpu"]
    assert found["ram_bytes"] > 2**28
    assert 1 <= found["affinity"] <= found["cores"]
    json.dumps(found)


@pytest.mark.parametrize("name", ["../../evil", "a/b", "..", "a\\b", "bell\x07", "\x1b[2J", ".git"])
def test_no_name_of_a_machine_or_environment_leads_out_of_the_results(tmp_path, name):
    for place in (
        lambda: store_path(tmp_path, name, "", "env"),
        lambda: store_path(tmp_path, "machine", "", f"/{name}"),
        lambda: machine_folder(tmp_path, name),
    ):
        with pytest.raises(UsageError, match="is no name for"):
            place()
