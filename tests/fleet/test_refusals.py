"""Workers that a sweep must not use, each with the reason; and the rest goes on."""

import shutil

import pytest

import harness
from harness.errors import FleetError
from harness.fleet import pools
from harness.fleet.sources import IMPORT_S
from tests.fleet.processes import REPOSITORY, commit, git, project


@pytest.fixture(scope="module", autouse=True)
def odd(fleet):
    """A fleet of odd workers, and one that is as it should be."""
    folder = fleet.folder

    def copy(name, *without):
        shutil.copytree(
            REPOSITORY / "harness",
            folder / name / "harness",
            ignore=shutil.ignore_patterns("__pycache__", *without),
        )
        file = folder / name / "harness" / "__init__.py"
        file.write_text(file.read_text().replace(harness.__version__, f"9.9.{name}"))
        return str(folder / name)

    def place(name, extra=""):
        return project(folder / name, fleet.package, extra)

    fake = folder / "fake" / "jax-0.0.1.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.0.1\n")
    ahead = place("ahead")
    (ahead / "notes").write_text("more")
    git(ahead, "add", "-A")
    commit(ahead)
    dirty = place("dirty")
    (dirty / fleet.package / "slow.py").write_text("# changed\n")
    (folder / "file").write_text("")
    fleet.worker("good")
    fleet.worker("newer", python=copy("newer"))
    fleet.worker("older", python=copy("older", "fleet"))
    fleet.worker("bare", python=str(fleet.without))
    fleet.worker("jax", python=f"{fake.parent}:{REPOSITORY}")
    fleet.worker("source", cwd=place("source", " + 1"))
    fleet.worker("ahead", cwd=ahead)
    fleet.worker("dirty", cwd=dirty)
    fleet.worker("disk", HARNESS_SPOOL=str(folder / "file" / "spool"))
    names = ("good", "newer", "older", "bare", "jax", "source", "ahead", "dirty", "disk")
    fleet.wait_for(*names)


def test_each_is_refused_with_both_versions_and_the_others_measure(fleet):
    import jax

    outcome, notes, _ = fleet.sweep([fleet.workload("small", "Scale")])
    assert outcome.measured == 2
    assert {r.machine for r in outcome.records} == {"good"}
    assert all("tcp://127.0.0.1:" in note for note in notes)
    assert [note for note in notes if note.startswith("The worker ahead (tcp://127.0.0.1:")]
    said = "\n".join(sorted(note.partition("is not used: it ")[2] for note in notes))
    here = harness.__version__
    assert f"has harness 9.9.newer, and this is harness {here}" in said
    assert f"has harness 9.9.older, and this is harness {here}" in said
    assert "has no harness: " in said
    assert "No module named 'harness'" in said
    assert f"has jax 0.0.1, and here it is {jax.__version__}" in said
    assert f"has {fleet.package}.small.Scale in version " in said
    assert "is at commit " in said
    assert "has uncommitted changes (" in said
    assert "and here there are no uncommitted changes" in said
    assert "cannot keep records: " in said
    assert "Not a directory; free space there, or name another folder in HARNESS_SPOOL" in said
    assert len(notes) == 8


def test_where_none_is_left_nothing_is_measured(fleet):
    with pytest.raises(FleetError) as caught:
        fleet.sweep([fleet.workload("small", "Scale")], only=("newer", "disk"))
    text = str(caught.value)
    assert f"No worker of {fleet.address} fits" in text
    assert "has harness 9.9.newer" in text
    assert "cannot keep records" in text


def test_a_target_that_no_worker_is_there_for_is_named(fleet):
    with pytest.raises(FleetError) as caught:
        fleet.sweep([fleet.workload("small", "Scale")], targets=("gpu",), only=("good",))
    text = str(caught.value)
    assert f"No worker of {fleet.address} has the resource gpu=1" in text
    assert "good (tcp://" in text
    assert "has the resources: cpu=1" in text
    assert "--resources gpu=1" in text


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:8786", "unknown address scheme 'http'"),
        ("host", "missing port number"),
        ("tcp://host:8786x", "invalid literal"),
    ],
)
def test_an_address_that_is_none_is_refused_at_once(address, said):
    with pytest.raises(FleetError, match=said):
        pools.sweep(address)


def test_no_scheduler_is_said_within_seconds(monkeypatch):
    monkeypatch.setattr(pools, "CONNECT_S", 0.5)
    with pytest.raises(FleetError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:1: "):
        pools.sweep("tcp://127.0.0.1:1")


def test_importing_may_not_take_longer_than_asking():
    assert IMPORT_S < pools.ANSWER_S
