"""What is proven bad is moved aside, and nothing else; the next run of JAX writes it again."""

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.cache import repair
from harness.cache.directory import UnusableCacheError, open_directory
from harness.cache.finding import CacheFinding, Fix, names
from harness.cache.survey import survey
from tests.cache.filled import CAP, backdate, diagnose, run_jax, spoil
from tests.forks import harness


def entries(directory):
    return survey(open_directory(str(directory))).entries


def repaired(directory, every, seen=None):
    """Have entries moved as if a check had found them bad."""
    fix = Fix("repair", "")
    bad = CacheFinding("torn", names(every), "problem", "compiled-in-each-process", fix)
    return repair.repair(directory, seen or every, [bad])


@pytest.mark.parametrize("cap", [-1, CAP])
def test_after_a_repair_the_next_run_of_jax_writes_again(tmp_path, cap, says):
    directory = tmp_path / "cache"
    run_jax(directory, cap=cap)
    names = {spoil(directory, "torn", "jit_first"), spoil(directory, "empty", "jit_second")}
    sick = run_jax(directory, cap=cap)
    assert (sick["hits"], len([w for w in sick["warned"] if "Error reading" in w])) == (1, 2)
    says("doctor", directory, "--no-put-cost", code=1)
    words = "doctor", directory, "--repair", "--no-put-cost", "--format=json"
    assert set(json.loads(says(*words))["repaired"]["moved"]) == names
    assert run_jax(directory, cap=cap) == {"hits": 1, "written": 2, "warned": []}
    assert run_jax(directory, cap=cap) == {"hits": 3, "written": 0, "warned": []}
    assert diagnose(directory).state == "healthy"


def test_what_was_moved_comes_back_by_the_command_that_is_printed(fill, says):
    directory = fill(CAP)
    name = spoil(directory, "torn")
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    text = says("doctor", directory, "--repair", "--no-put-cost")
    assert text.startswith("1 entry moved to ")  # and not with the command that did it
    assert not (directory / f"{name}-cache").exists()
    (back,) = (line for line in text.splitlines() if "mv -n" in line)
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
    words = "cache", "doctor", directory, "--repair", "--no-put-cost", "--format=json"
    with ThreadPoolExecutor() as both:
        done = list(both.map(lambda _: harness(*words), range(2)))
    assert [one.returncode for one in done] == [0, 0], done
    moved = [name for one in done for name in json.loads(one.stdout)["repaired"]["moved"]]
    assert len(moved) == len(set(moved)) == 300
    assert len(list(directory.glob("quarantine-*/*-cache"))) == 300


def test_doctors_of_one_second_use_folders_of_their_own(fill, monkeypatch):
    epoch = time.gmtime(0)
    monkeypatch.setattr(time, "gmtime", lambda: epoch)
    directory = fill()
    folders = [Path(repaired(directory, [e]).folder).name for e in entries(directory)]
    stamp = "quarantine-19700101T000000Z"
    assert folders == [stamp, f"{stamp}-2", f"{stamp}-3"]


def test_an_entry_that_was_written_anew_or_taken_away_is_left(fill):
    directory = fill()
    first, second, _ = entries(directory)
    (directory / f"{first.name}-cache").write_bytes(b"another")
    (directory / f"{second.name}-cache").unlink()
    done = repaired(directory, [first, second])
    assert (done.moved, done.changed, done.gone) == ([], [first.name], [second.name])
    assert done.folder == ""
    assert not list(directory.glob("quarantine-*"))


@pytest.mark.parametrize(
    ("step", "at", "text", "left"),
    [
        (Path, "mkdir", r"0 bad entries were moved, then it failed: .*13.*Expected", 0),
        (os, "rename", r"0 bad entries were moved, then it failed: .*13", 0),
        (os, "rename jit_second", r"1 bad entries were moved to .*quarantine-.*, then", 1),
    ],
)
def test_a_move_that_fails_says_how_far_it_came(fill, monkeypatch, step, at, text, left):
    directory = fill()
    seen = entries(directory)
    name, _, module = at.partition(" ")
    whole = getattr(step, name)

    def refuse(path, *rest):
        if module in str(path):
            raise PermissionError(13, "Permission denied")
        whole(path, *rest)

    monkeypatch.setattr(step, name, refuse)
    with pytest.raises(UnusableCacheError, match=text):
        repaired(directory, list(seen))
    assert len(list(directory.glob("quarantine-*"))) == left
