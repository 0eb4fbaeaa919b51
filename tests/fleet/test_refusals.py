"""Workers that a sweep must not use, each with the reason; and the rest goes on."""

import pytest

import harness
from harness.errors import FleetError
from harness.fleet import pools, workers
from harness.fleet.sources import IMPORT_S
from tests.fleet.processes import Fleet, project


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A fleet of odd workers, and one that is as it should be."""
    fleet = Fleet(tmp_path_factory.mktemp("odd"), bare_scheduler=True)
    newer = fleet.folder / "newer" / "harness"
    newer.mkdir(parents=True)
    (newer / "__init__.py").write_text("__version__ = '9.9'\n")
    dirty = project(fleet.folder / "dirty", fleet.package)
    (dirty / fleet.package / "slow.py").write_text("# changed\n")
    fleet.worker("good")
    fleet.worker("newer", python=str(newer.parent))
    fleet.worker("bare", python=str(fleet.without))
    fleet.worker("source", cwd=project(fleet.folder / "source", fleet.package, " + 1"))
    fleet.worker("dirty", cwd=dirty)
    fleet.wait_for("good", "newer", "bare", "source", "dirty")
    yield fleet
    fleet.close()


def test_each_is_refused_with_both_versions_and_the_others_measure(odd):
    outcome, notes, _ = odd.sweep([odd.workload("small", "Scale")])
    assert outcome.measured == 2
    assert {r.machine for r in outcome.records} == {"good"}
    assert all("tcp://127.0.0.1:" in note for note in notes)
    assert [note for note in notes if note.startswith("The worker dirty (tcp://127.0.0.1:")]
    said = "\n".join(sorted(note.partition("is not used: it ")[2] for note in notes))
    assert f"has harness 9.9, and this is harness {harness.__version__}" in said
    assert "has no harness (ModuleNotFoundError" in said
    assert f"has {odd.package}.small.Scale in version " in said
    assert "has uncommitted changes (" in said
    assert "and here there are no uncommitted changes" in said
    assert len(notes) == 4


def test_where_none_is_left_nothing_is_measured(odd):
    with pytest.raises(FleetError) as caught:
        odd.sweep([odd.workload("small", "Scale")], only=("newer", "bare"))
    text = str(caught.value)
    assert f"No worker of {odd.address} can measure" in text
    assert "has harness 9.9" in text
    assert "has no harness" in text
    with pytest.raises(FleetError, match=r"has no workers\. Start one on each machine"):
        odd.sweep([odd.workload("small", "Scale")], only=("nobody",))


def test_a_target_that_no_worker_is_there_for_is_named(odd):
    with pytest.raises(FleetError) as caught:
        odd.sweep([odd.workload("small", "Scale")], targets=("gpu",), only=("good",))
    text = str(caught.value)
    assert f"No worker of {odd.address} can measure on gpu" in text
    assert "good (tcp://" in text
    assert "has the resources: cpu=1" in text
    assert "--resources gpu=1" in text


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:8786", "unknown address scheme 'http'"),
        ("host", "missing port number"),
        ("tcp://host:8786x", "invalid literal"),
        ("tcp://127.0.0.1:1", r"No Dask scheduler answers at tcp://127\.0\.0\.1:1: "),
    ],
)
def test_an_address_where_no_scheduler_answers_is_said_within_seconds(address, said, monkeypatch):
    monkeypatch.setattr(pools, "CONNECT_S", 0.5)
    with pytest.raises(FleetError, match=said):
        pools.sweep(address)


def test_importing_may_not_take_longer_than_asking():
    assert IMPORT_S < workers.ANSWER_S
