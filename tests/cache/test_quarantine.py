from __future__ import annotations

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.cache import removal
from harness.cache.directory import UnusableCacheError, open_directory
from harness.cache.survey import survey
from tests.cache.filled import (
    CAP,
    backdate,
    diagnose,
    run_harness,
    run_jax,
    spoil,
)


@pytest.mark.parametrize("cap", [-1, CAP])
def test_after_a_quarantine_the_next_run_of_jax_heals(tmp_path, cap):
    directory = tmp_path / "cache"
    run_jax(directory, cap=cap)
    names = {spoil(directory, "torn", "jit_first"), spoil(directory, "empty", "jit_second")}
    sick = run_jax(directory, cap=cap)
    assert (sick["hits"], len([w for w in sick["warned"] if "Error reading" in w])) == (1, 2)
    ailing = run_harness("doctor", str(directory), "--no-put-cost")
    assert ailing.returncode == 1, ailing.stdout + ailing.stderr
    done = run_harness("doctor", str(directory), "--quarantine", "--no-put-cost")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line[13:] for line in done.stdout.splitlines() if line.startswith("moved aside: ")} == (
        names
    )
    healing = run_jax(directory, cap=cap)
    assert (healing["hits"], healing["written"], healing["warned"]) == (
        3 - len(names),
        len(names),
        [],
    )
    healed = run_jax(directory, cap=cap)
    assert (healed["hits"], healed["written"], healed["warned"]) == (3, 0, [])
    assert diagnose(directory).state == "healthy"


def test_what_was_moved_comes_back_by_the_command_that_is_printed(fill):
    directory = fill(CAP)
    name = spoil(directory, "torn")
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    done = run_harness("doctor", str(directory), "--quarantine", "--no-put-cost")
    assert not (directory / f"{name}-cache").exists()
    (back,) = (line for line in done.stdout.splitlines() if "mv -n" in line)
    subprocess.run(["sh", "-c", back], check=True)
    after = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    assert after == before


def test_two_doctors_at_once_both_succeed_and_lose_nothing(fill):
    directory = fill(CAP)
    for number in range(300):
        path = directory / f"jit_{number}-{number:064x}-cache"
        path.write_bytes(b"%d" % number)
        path.with_name(f"jit_{number}-{number:064x}-atime").write_bytes(bytes(8))
    backdate(directory)
    command = ["doctor", str(directory), "--quarantine", "--no-put-cost", "--json"]
    with ThreadPoolExecutor() as both:
        done = list(both.map(lambda _: run_harness(*command), range(2)))
    assert [one.returncode for one in done] == [0, 0], done
    moved = [name for one in done for name in json.loads(one.stdout)["moved"]["names"]]
    assert len(moved) == len(set(moved)) == 300
    assert len(list(directory.glob("quarantine-*/*-cache"))) == 300


def test_doctors_of_one_second_use_folders_of_their_own(fill, monkeypatch):
    epoch = time.gmtime(0)
    monkeypatch.setattr(time, "gmtime", lambda: epoch)
    directory = fill()
    seen = survey(open_directory(str(directory)))
    folders = {removal.move_aside(directory, [e]).folder for e in seen.entries}
    assert {Path(folder).name for folder in folders} == {
        "quarantine-19700101T000000Z",
        "quarantine-19700101T000000Z-2",
        "quarantine-19700101T000000Z-3",
    }


def test_an_entry_that_was_written_anew_or_taken_away_is_left(fill):
    directory = fill()
    first, second, _ = (seen := survey(open_directory(str(directory)))).entries
    (directory / f"{first.name}-cache").write_bytes(b"another")
    (directory / f"{second.name}-cache").unlink()
    moved = removal.move_aside(directory, seen.entries[:2])
    assert (moved.names, moved.changed, moved.gone) == ((), (first.name,), (second.name,))
    assert moved.folder == ""
    assert not list(directory.glob("quarantine-*"))


def test_a_directory_that_cannot_be_written_is_one_clear_error(fill, monkeypatch):
    directory = fill()
    seen = survey(open_directory(str(directory)))

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(
        UnusableCacheError, match=r"0 entries of .* were moved, then it failed: .*13"
    ):
        removal.move_aside(directory, seen.entries)


def test_entries_that_refuse_to_be_moved_leave_no_empty_folder(fill, monkeypatch):
    directory = fill()
    seen = survey(open_directory(str(directory)))

    def refuse(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(UnusableCacheError, match=r"0 entries .* Operation not permitted"):
        removal.move_aside(directory, seen.entries)
    assert not list(directory.glob("quarantine-*"))


def test_a_move_that_fails_half_way_says_where_the_rest_is(fill, monkeypatch):
    directory = fill()
    seen = survey(open_directory(str(directory)))
    rename = os.rename

    def refuse_the_second(source, target):
        if "jit_second" in str(source):
            raise PermissionError(1, "Operation not permitted")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse_the_second)
    with pytest.raises(UnusableCacheError, match=r"1 entries of .* were moved to .*quarantine-"):
        removal.move_aside(directory, seen.entries)


def test_a_file_address_comes_back_by_the_command_that_is_printed(fill):
    directory = fill()
    name = spoil(directory, "torn")
    done = run_harness("doctor", f"file://{directory}", "--quarantine", "--no-put-cost")
    (back,) = (line for line in done.stdout.splitlines() if "mv -n" in line)
    subprocess.run(["sh", "-c", back], check=True)
    assert (directory / f"{name}-cache").exists()
