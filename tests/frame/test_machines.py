"""Results of many machines in one tree: put together by file, told apart by name, never hidden."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings

import pandas as pd
import pytest

from harness.errors import HarnessWarning
from harness.frame import choose, export
from harness.frame.differences import shared_names
from harness.frame.load import everything, frame_of
from harness.records.schema import encode, to_raw
from harness.scaffold.files import MERGED
from harness.verdicts import compare_arms
from harness.verdicts.history import history, series
from tests.frame.trees import ENV, record, write, write_asv
from tests.repositories import git
from tests.verdicts.history.trees import nights

HOST = {"cpu": "Small", "cores": 2, "ram_bytes": 8 * 2**30}


def environment(device="cpu", **host):
    return to_raw({"device": device, "host": {**HOST, **host}})


def rows(path):
    """Return what tells the rows of a tree apart, and how many processes each has."""
    frame = everything(path)
    kept = frame[["machine", "commit", "workload", "stage", "n_processes", "status"]]
    return sorted(map(tuple, kept.itertuples(index=False)))


def machine_tree(folder, machine, workload):
    """Write what one machine measured: records, and asv's files of a workload of its own."""
    write(folder, *(record(n, machine=machine, workload=workload) for n in range(3)))
    about = {f"{workload}.track_trace": {"param_names": ["size"], "unit": "seconds"}}
    cells = {f"{workload}.track_trace": [[0.1], [["8"]], "1", 0, 1]}
    write_asv(folder, cells, about, machine=machine)
    return folder


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


def committed(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "measured")


def pulled(one, other):
    """Return whether what another clone holds merges without a conflict."""
    git(one, "fetch", "-q", str(other), "main")
    try:
        git(one, "merge", "-q", "-m", "both", "FETCH_HEAD")
    except subprocess.CalledProcessError:
        return False
    return True


def test_trees_of_two_machines_are_copied_over_each_other(tmp_path):
    one = machine_tree(tmp_path / "one", "box", "family.One")
    other = machine_tree(tmp_path / "other", "rig", "family.Two")
    expected = sorted([*rows(one), *rows(other)])
    whole = tmp_path / "whole"
    for tree in (one, other):
        shutil.copytree(tree, whole, dirs_exist_ok=True)

    assert rows(whole) == expected
    assert set(everything(whole)["machine"]) == {"box", "rig"}


def test_branches_of_two_machines_merge_without_conflict(repository):
    one, other = repository
    machine_tree(one / "results", "box", "family.Work")
    machine_tree(other / "results", "rig", "family.Work")
    expected = sorted([*rows(one / "results"), *rows(other / "results")])
    committed(one)
    committed(other)

    assert pulled(one, other)
    assert rows(one / "results") == expected


def test_asvs_list_of_benchmarks_is_whole_after_a_merge_of_two_suites(repository):
    one, other = repository
    machine_tree(one / "results", "box", "family.One")
    machine_tree(other / "results", "rig", "family.Two")
    expected = sorted([*rows(one / "results"), *rows(other / "results")])
    committed(one)
    committed(other)

    assert not pulled(one, other)
    said = git(one, "status", "--porcelain").splitlines()
    assert [line for line in said if line[:2] == "AA"] == ["AA results/benchmarks.json"]
    listed = json.loads((one / "results" / "benchmarks.json").read_text())
    assert list(listed) == ["family.One.track_trace", "version"]
    assert rows(one / "results") == expected


def test_two_clones_on_one_machine_measure_the_same_and_merge(repository):
    one, other = repository
    for folder, first, slower in ((one, 0, 1), (other, 2, 3)):
        write(
            folder / "results",
            *(record(n, {"trace": [1e6 * slower]}) for n in range(first, first + 4)),
        )
        committed(folder)
    assert pulled(one, other)
    frame = everything(one / "results")

    assert not any(frame.attrs["problems"].values())
    trace = frame[frame["stage"] == "trace"].iloc[0]
    # Processes 2 and 3 were measured twice: what stands later in the file counts.
    assert (trace["n_processes"], sorted(trace["samples"])) == (6, [0.001] * 2 + [0.003] * 4)


def test_a_line_that_a_killed_writer_left_spoils_no_other_in_a_merge(repository):
    one, other = repository
    path = write(one / "results", record(0))
    with path.open("ab") as handle:
        handle.write(encode(record(9))[:100])
    write(other / "results", record(1))
    committed(one)
    committed(other)
    assert pulled(one, other)
    with pytest.warns(HarnessWarning, match="left out: 1"):
        frame = everything(one / "results")

    assert frame.attrs["problems"]["torn"] + frame.attrs["problems"]["corrupt"] == 1
    assert set(frame["n_processes"]) == {2}


def test_parquet_folders_of_two_machines_are_copied_over_each_other(tmp_path):
    whole = tmp_path / "whole"
    for machine in ("box", "rig"):
        frame = frame_of([record(n, machine=machine) for n in range(3)])
        export.write(frame, tmp_path / machine)
        shutil.copytree(tmp_path / machine, whole, dirs_exist_ok=True)

    assert list(everything(whole)["machine"].unique()) == ["box", "rig"]


def test_a_name_that_unlike_machines_share_is_warned_of(tmp_path):
    write(
        tmp_path,
        record(0, environment=environment()),
        record(0, environment=environment(cores=64), env="other"),
    )
    with pytest.warns(HarnessWarning, match=r"share the name 'box' \(cores 2 → 64\)") as caught:
        frame = everything(tmp_path)
    assert "HARNESS_MACHINE, or --machine" in str(caught[0].message)
    export.write(frame, tmp_path / "parquet")
    with pytest.warns(HarnessWarning, match="share the name 'box'"):
        everything(tmp_path / "parquet")


def test_a_pool_of_alike_machines_may_share_a_name(tmp_path):
    alike = [environment(), environment(ram_bytes=8.2 * 2**30), environment(system="Linux 9")]
    write(
        tmp_path,
        *(record(0, environment=e, env=str(n)) for n, e in enumerate(alike)),
        record(0, target="gpu", environment=environment("NVIDIA H200")),
        record(0, machine="rig", environment=environment(cores=64)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert shared_names(everything(tmp_path)) == {}


def test_a_history_is_cut_where_another_machine_takes_the_name():
    slower = {4: {"environment": environment(cores=64)}}
    frame = frame_of(nights([1.0] * 4 + [3.0] * 4, slower, environment=environment()))

    assert history(frame).empty
    cuts = history(frame, cuts=True)
    assert cuts["change"].tolist() == ["incomparable"]
    assert cuts["reason"].tolist() == ["another machine of this name: cores 2 → 64"]
    assert series(frame)["piece"].tolist() == [0] * 4 + [1] * 4


HOUR_MS = 3_600_000


def test_the_latest_of_every_machine_is_shown_whatever_their_clocks_say():
    started = 1_700_000_000_000
    frame = frame_of(
        [
            record(0, machine="box", started_at_ms=started),
            record(0, machine="box", started_at_ms=started - 5, env="older"),
            record(0, machine="rig", started_at_ms=started - HOUR_MS),
        ]
    )
    latest = choose.narrow(frame, [], latest=True)

    assert set(zip(latest["machine"], latest["env"], strict=True)) == {("box", ENV), ("rig", ENV)}
    headings = [heading.split(" · ")[0] for heading, _ in choose.by_origin(frame)]
    assert headings == ["box", "box", "rig"]


def test_a_clock_an_hour_ahead_makes_no_older_commit_the_newest():
    later = {"commit": "f" * 40, "commit_date_ms": 1_700_000_600_000}
    old = [record(n, {"compile": [1e6]}, started_at_ms=1_700_000_900_000 + HOUR_MS) for n in (0, 1)]
    new = [record(n, {"compile": [2e6]}, started_at_ms=1_700_000_900_000, **later) for n in (0, 1)]
    both = frame_of([*new, *old])

    compared = compare_arms(frame_of(old), both)
    assert compared.set_index("stage").loc["compile", "b_s"] == pytest.approx(0.002)
    reordered = pd.concat([both.iloc[::-1]], ignore_index=True)
    assert compare_arms(frame_of(old), reordered).set_index("stage").loc[
        "compile", "b_s"
    ] == pytest.approx(0.002)
