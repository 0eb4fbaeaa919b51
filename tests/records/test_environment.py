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
    assert found == Commit(git(repository, "rev-parse", "HEAD"), 1709208000_000, "")
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
    def of(place, content):
        (repository / place).write_bytes(content)
        return commit_of(repository).dirty

    two, three = (of("code.py", text) for text in (b"x = 2\n", b"x = 3\n"))
    assert len({"", two, three}) == 3
    git(repository, "add", "code.py")
    assert commit_of(repository).dirty == three  # staged or not, it is what is measured
    assert of("code.py", b"x = 2\n") == two
    assert of("code.py", b"x = 1\n") == ""
    every = bytes(range(256))
    assert of("data.bin", every) == ""  # nobody has added it
    commit(repository)
    assert len({"", of("data.bin", every + b"\x00"), of("data.bin", every + b"\xff")}) == 3


@pytest.mark.parametrize("name", ["results", "results [of] *", "c*"])
def test_changed_results_do_not_make_the_tree_dirty(repository, tmp_path, name):
    results = repository / name
    results.mkdir(exist_ok=True)
    (results / "numbers.json").write_text("[1, 2]\n")
    commit(repository)
    (results / "numbers.json").write_text("[1, 2, 3]\n")
    assert commit_of(repository, exclude=tmp_path / "outside") == commit_of(repository)
    assert commit_of(repository).dirty
    for place in (repository, repository / "results"):
        assert commit_of(place, exclude=results).dirty == ""
    (repository / "code.py").write_text("x = 2\n")
    assert commit_of(repository, exclude=results).dirty


# --- names ----------------------------------------------------------------------------------------


def test_the_environments_name_holds_versions_and_no_path_or_is_asvs(monkeypatch):
    monkeypatch.delenv("ASV_ENV_NAME", raising=False)
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert environment.env_name() == f"existing-py{python}-jax{jax.__version__}"
    assert environment.existing_env_name("3.11", "") == "existing-py3.11"
    monkeypatch.setenv("ASV_ENV_NAME", "virtualenv-py3.12-jax0.11.2")
    assert environment.env_name() == "virtualenv-py3.12-jax0.11.2"


@pytest.fixture
def known_to_asv(tmp_path, monkeypatch):
    """What writes asv's file of machines, on a host that has a name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HARNESS_MACHINE", raising=False)
    monkeypatch.setattr(platform, "node", lambda: "host-7")
    return (tmp_path / ".asv-machine.json").write_text


@pytest.mark.parametrize(
    ("known", "name"),
    [
        ('{"version": 1, "workstation": {}}', "workstation"),
        ('{"version": 1, "workstation": {}, "laptop": {}}', "host-7"),
        ('{"version": 1, "host-7": {}}', "host-7"),
        ('{"version": 1, "workstation": {}, "host-7": {}}', "host-7"),
        *((broken, "host-7") for broken in ('{"version": 1}', "[]", '"torn"', '{"version": 1, "w')),
    ],
)
def test_the_machine_is_the_one_that_asv_knows_or_the_host_or_is_named(
    known_to_asv, monkeypatch, known, name
):
    assert machine_name() == "host-7"
    known_to_asv(known)
    assert machine_name() == name
    monkeypatch.setenv("HARNESS_MACHINE", "fleet-a")
    assert machine_name() == "fleet-a"


def test_a_host_without_a_name_has_one_all_the_same(known_to_asv, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "")
    assert machine_name() == "localhost"


# --- what a number was taken in -------------------------------------------------------------------


def test_versions_are_those_of_what_is_imported():
    expected = {"jax": jax.__version__, "jaxlib": jax.lib.__version__}
    expected["python"] = platform.python_version()
    assert environment.versions().items() >= expected.items()


@pytest.mark.parametrize("name", ["XLA_FLAGS", "JAX_ENABLE_X64", "NPROC", "PYTHONHASHSEED"])
def test_a_flag_that_reaches_xla_makes_another_identity_and_no_other_variable(monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    before = environment.identity()
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    assert environment.identity() == before
    monkeypatch.setenv(name, "1")
    assert environment.flags()[name] == "1"
    assert "SECRET_TOKEN" not in environment.flags()
    assert environment.identity() != before


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
