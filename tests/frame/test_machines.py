"""Results of many machines in one tree: put together by file, told apart by name, never hidden."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings

import pytest

from harness.errors import HarnessWarning
from harness.frame import choose, export
from harness.frame.differences import shared_names
from harness.frame.load import everything, frame_of
from harness.init.files import MERGED
from harness.records.schema import encode, to_raw
from tests.frame.trees import ENV, record, write, write_asv
from tests.repositories import git
from tests.verdicts.words import compare_arms

HOST = {"cpu": "Small", "cores": 2, "ram_bytes": 8 * 2**30}


def environment(device="cpu", **host):
    return to_raw({"device": device, "host": {**HOST, **host}})


def other(**fields):
    return record(environment=environment(cores=64), **fields)


def rows(path):
    """Return what tells the rows of a tree apart, and how many processes each has."""
    frame = everything(path)
    kept = frame[["machine", "commit", "workload", "stage", "n_processes", "status"]]
    return sorted(map(tuple, kept.itertuples(index=False)))


def machine_tree(folder, machine, workload):
    """Write what one machine measured: records, and asv's files of a workload of its own."""
    write(folder, *(record(n, machine=machine, workload=workload) for n in range(3)))
    name = f"{workload}.track_trace"
    about = {name: {"param_names": ["size"], "unit": "seconds"}}
    write_asv(folder, {name: [[0.1], [["8"]], "1", 0, 1]}, about, machine=machine)


@pytest.fixture
def repository(tmp_path):
    """A repository as `harness init` leaves it, and a clone of it."""
    one, other = tmp_path / "one", tmp_path / "other"
    git(tmp_path, "init", "-q", "-b", "main", str(one))
    patterns = {"records": "results/**/*.jsonl", "asvs": "results/**/*.json", "ours": "none"}
    lines = "".join(f"{line.format(**patterns)}\n" for line in MERGED)
    (one / ".gitattributes").write_text(lines)
    git(one, "add", "-A")
    git(one, "commit", "-qm", "begin")
    git(tmp_path, "clone", "-q", str(one), str(other))
    return one, other


def pulled(one, other):
    """Return whether what two clones hold merges without a conflict."""
    for folder in (one, other):
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "measured")
    git(one, "fetch", "-q", str(other), "main")
    try:
        git(one, "merge", "-q", "-m", "both", "FETCH_HEAD")
    except subprocess.CalledProcessError:
        return False
    return True


def test_trees_of_two_machines_are_copied_over_each_other(tmp_path):
    expected = []
    for machine, workload in (("box", "family.One"), ("rig", "family.Two")):
        machine_tree(tmp_path / machine, machine, workload)
        expected += rows(tmp_path / machine)
        shutil.copytree(tmp_path / machine, tmp_path / "whole", dirs_exist_ok=True)

    assert rows(tmp_path / "whole") == sorted(expected)


@pytest.mark.parametrize(
    "workloads", [("family.Work", "family.Work"), ("family.One", "family.Two")]
)
def test_branches_of_two_machines_merge_but_for_asvs_list_of_unlike_benchmarks(
    repository, workloads
):
    expected = []
    for folder, machine, workload in zip(repository, ("box", "rig"), workloads, strict=True):
        machine_tree(folder / "results", machine, workload)
        expected += rows(folder / "results")
    one, _ = repository

    assert pulled(*repository) == (len(set(workloads)) == 1)
    said = [line for line in git(one, "status", "--porcelain").splitlines() if line[:2] == "AA"]
    assert said == ["AA results/benchmarks.json"] * (len(set(workloads)) - 1)
    listed = json.loads((one / "results" / "benchmarks.json").read_text())
    assert list(listed) == [f"{workloads[0]}.track_trace", "version"], "a whole file all the same"
    assert rows(one / "results") == sorted(expected)


@pytest.mark.parametrize("torn", [b"", encode(record(9))[:100]])  # a killed writer has left it
def test_two_clones_on_one_machine_measure_the_same_and_merge(repository, torn):
    for folder, first, slower in zip(repository, (0, 2), (1, 3), strict=True):
        taken = (record(n, {"trace": [1e6 * slower]}) for n in range(first, first + 4))
        path = write(folder / "results", *taken)
        path.write_bytes(path.read_bytes() + torn * (slower == 1))
    assert pulled(*repository)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = everything(repository[0] / "results")

    assert ["left out: 1" in str(one.message) for one in said] == [True] * bool(torn)
    problems = frame.attrs["problems"]
    assert problems["torn"] + problems["corrupt"] == bool(torn)
    trace = frame[frame["stage"] == "trace"].iloc[0]
    # Processes 2 and 3 were measured twice: what stands later in the file counts.
    assert (trace["n_processes"], sorted(trace["samples"])) == (6, [0.001] * 2 + [0.003] * 4)


def test_a_name_that_unlike_machines_share_is_warned_of(tmp_path):
    write(tmp_path, record(environment=environment()), other(env="other"))
    with pytest.warns(HarnessWarning, match=r"share the name 'box' \(cores 2 → 64\)") as caught:
        frame = everything(tmp_path)
    assert "HARNESS_MACHINE, or --machine" in str(caught[0].message)
    export.write(frame, tmp_path / "rows.parquet")
    with pytest.warns(HarnessWarning, match="share the name 'box'"):
        everything(tmp_path / "rows.parquet")


def test_a_pool_of_alike_machines_may_share_a_name(tmp_path):
    alike = [environment(), environment(ram_bytes=8.2 * 2**30), environment(system="Linux 9")]
    pool = (record(environment=e, env=str(n)) for n, e in enumerate(alike))
    on_gpu = record(target="gpu", environment=environment("NVIDIA H200"))
    write(tmp_path, *pool, on_gpu, other(machine="rig"))
    assert shared_names(everything(tmp_path)) == {}  # a warning would be an error


HOUR_MS = 3_600_000


def test_the_latest_of_every_machine_is_shown_whatever_their_clocks_say():
    at, rig = 1_700_000_000_000, {"machine": "rig"}
    older = record(0, started_at_ms=at - 5, env="older")
    behind = record(0, started_at_ms=at - HOUR_MS, **rig)
    frame = frame_of([record(0, started_at_ms=at), older, behind])
    latest = choose.narrow(frame, [], latest=True)

    assert set(zip(latest["machine"], latest["env"], strict=True)) == {("box", ENV), ("rig", ENV)}
    headings = [heading.split(" · ")[0] for heading, _ in choose.by_origin(frame)]
    assert headings == ["box", "box", "rig"]


def test_a_clock_an_hour_ahead_makes_no_older_commit_the_newest():
    later = {"commit": "f" * 40, "commit_date_ms": 1_700_000_600_000}
    old = [record(n, {"compile": [1e6]}, started_at_ms=1_700_000_900_000 + HOUR_MS) for n in (0, 1)]
    new = [record(n, {"compile": [2e6]}, started_at_ms=1_700_000_900_000, **later) for n in (0, 1)]
    both = frame_of([*new, *old])
    for given in (both, both.iloc[::-1].reset_index(drop=True)):
        compared = compare_arms(frame_of(old), given).set_index("stage")
        assert compared.loc["compile", "b_s"] == pytest.approx(0.002)
