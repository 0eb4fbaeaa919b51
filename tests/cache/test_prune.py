from __future__ import annotations

import json
import os
import time

import jax
import pytest

from harness.cache import removal
from harness.cache.directory import open_directory
from harness.cache.ledger import ledger
from harness.cache.survey import survey
from tests.cache.filled import CAP, backdate, entry_of, run_jax

DAY = 86400


def going(directory, **limits):
    seen = survey(open_directory(str(directory)))
    return [entry.module for entry in removal.superfluous(seen, **limits)]


def used(directory, module, days_ago):
    path = entry_of(directory, module)
    at_s = time.time() - days_ago * DAY
    os.utime(path, (at_s, path.stat().st_mtime))
    times = path.with_name(path.name.removesuffix("-cache") + "-atime")
    if times.exists():
        times.write_bytes(int(at_s * 1e9).to_bytes(8, "little"))


@pytest.mark.parametrize("cap", [-1, CAP])
def test_what_goes_is_what_meets_all_limits_the_longest_unused_first(fill, cap):
    directory = fill(cap)
    backdate(directory, 40 * DAY)
    for module, days in (("jit_first", 30), ("jit_second", 3), ("jit_third", 20)):
        used(directory, module, days)
    every = ["jit_first", "jit_third", "jit_second"]
    assert going(directory) == every
    assert going(directory, unused_s=10 * DAY) == every[:2]
    assert going(directory, unused_s=10 * DAY, age_s=50 * DAY) == []
    seen = survey(open_directory(str(directory)))
    oldest_s = max(seen.taken_at - entry.written_at for entry in seen.entries)
    assert removal.superfluous(seen, age_s=oldest_s), "from that age on"
    assert going(directory, target="cpu") == every
    assert going(directory, target="other") == []
    whole = sum(path.stat().st_size for path in directory.glob("*-cache"))
    assert going(directory, max_size_bytes=whole) == []
    assert going(directory, max_size_bytes=whole - 1) == every[:1]
    assert going(directory, max_size_bytes=0, unused_s=10 * DAY) == every[:2]
    first = entry_of(directory, "jit_first").name.removesuffix("-cache")
    assert going(directory, keep={first}) == every[1:]
    assert going(directory, only={first}) == every[:1]


def test_what_is_young_or_not_of_jax_stays(fill):
    directory = fill()
    backdate(directory, 40 * DAY)
    os.utime(entry_of(directory, "jit_first"))
    (directory / "pip-cache").write_bytes(b"another's")
    assert set(going(directory, max_size_bytes=0)) == {"jit_second", "jit_third"}


@pytest.mark.parametrize("cap", [-1, CAP])
def test_only_yes_removes_and_jax_compiles_just_that_again(tmp_path, cap, says):
    directory = tmp_path / "cache"
    run_jax(directory, cap=cap)
    backdate(directory, 40 * DAY)
    for module, days in (("jit_first", 35), ("jit_second", 1), ("jit_third", 1)):
        used(directory, module, days)
    before = sorted(path.name for path in directory.iterdir())
    says("prune", directory, "--unused", "30d", said="1 of 3")
    assert sorted(path.name for path in directory.iterdir()) == before
    told = says("prune", directory, "--unused", "30d", "--yes", "--format=json")
    [name] = json.loads(told)["removed"]["names"]
    assert name.startswith("jit_first-")
    left = sorted(path.name for path in directory.iterdir())
    assert left == [one for one in before if not one.startswith("jit_first-")]
    assert run_jax(directory, cap=cap) == {"hits": 2, "written": 1, "warned": []}


def test_a_ledger_that_would_keep_nothing_is_refused(fill, says, tmp_path):
    directory = fill()
    other = tmp_path / "other.jsonl"
    with ledger(other):
        jax.jit(lambda x: x + 1)(1.0)
    words = "prune", directory, "--max-size", "0", "--yes", "--keep", other
    says(*words, code=2, said="--keep would keep nothing")
    assert len(list(directory.glob("*-cache"))) == 3


def test_what_a_call_left_that_was_stopped_goes_with_the_next(fill):
    directory = fill()
    left, busy = (directory / f"{removal.PREFIX}20200101T00000{n}Z" for n in range(2))
    for folder in (left, busy):
        folder.mkdir()
        (folder / "jit_f-cache").write_bytes(b"of before")
    os.utime(left, (0, 0))
    removal.remove(directory, [])
    assert [left.exists(), busy.exists()] == [False, True]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "Nothing says what may go"),
        ("--max-size 10parsecs", "expected a size such as"),
        ("--unused soon", "expected a time such as"),
        ("--target gpu", "expected cpu or other"),
        ("--jax 0.10.2", "belong together"),
    ],
)
def test_wrong_limits_are_one_line(tmp_path, says, words, said):
    says("prune", tmp_path, *words.split(), code=2, said=said)
