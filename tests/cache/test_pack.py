from __future__ import annotations

import json
import zipfile

import pytest

from harness.cache import pack as packs
from harness.cache.ledger import read
from tests.cache.filled import CAP, DAMAGE, ended, run_harness, run_jax

WITHOUT_PATH = {"JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none"}
PROGRAM = """
import jax, numpy as np
def one(x): return (x @ x).sum()
def two(x): return x * 3 - 1
for f in (one, two):
    jax.block_until_ready(jax.jit(f)(np.ones((8, 8), np.float32)))
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    place = tmp_path_factory.mktemp("program") / "train.py"
    place.write_text(PROGRAM)
    return place


@pytest.fixture(scope="module")
def packed(program):
    """A pack of the program, and the directory that it came from."""
    place, directory = program.with_name("cache.zip"), program.with_name("cache")
    command = ("pack", "-o", str(place), "--directory", str(directory), "--", str(program))
    done = run_harness(*command, env=WITHOUT_PATH)
    assert done.returncode == 0, done.stderr
    assert "2 entries" in done.stderr
    return place, directory


def hits(program, directory, book, **variables):
    where = {"JAX_COMPILATION_CACHE_DIR": str(directory), **WITHOUT_PATH, **variables}
    done = run_harness("ledger", "-o", str(book), "--", str(program), env=where)
    assert done.returncode == 0, done.stderr
    return [event.outcome for event in read(book).events]


@pytest.mark.parametrize("capped", [False, True])
def test_what_is_unpacked_elsewhere_is_hit(packed, program, tmp_path, capped):
    directory = tmp_path / "elsewhere"
    limit = {"JAX_COMPILATION_CACHE_MAX_SIZE": str(CAP)} if capped else {}
    if capped:  # another program filled it: every write fails where an entry lacks its time of use
        run_jax(directory, cap=CAP, functions=1)
    done = run_harness("unpack", str(packed[0]), str(directory), "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["unpacked"]["written"]) == 2
    assert hits(program, directory, tmp_path / "book.jsonl", **limit) == ["hit", "hit"]
    if capped:
        assert run_jax(directory, cap=CAP)["warned"] == []
    again = run_harness("unpack", str(packed[0]), str(directory))
    ended(again, 0, "2 were there already")
    assert not list(directory.glob(packs.PARTIAL + "*"))


def test_a_ledger_says_what_is_packed_and_what_is_not(packed, program, tmp_path):
    directory = tmp_path / "cache"
    assert set(hits(program, directory, tmp_path / "book.jsonl")) == {"unwritten"}
    command = ("pack", "-o", str(tmp_path / "b.zip"), "--ledger", str(tmp_path / "book.jsonl"))
    done = run_harness(*command)
    assert done.returncode == 6, done.stderr
    assert "0 entries" in done.stderr
    # One line where both took as long, else two.
    assert all(told in done.stderr for told in ("jit_one", "jit_two", "below the time threshold"))
    assert hits(program, packed[1], tmp_path / "warm.jsonl") == ["hit", "hit"]
    command = ("pack", "-o", str(tmp_path / "c.zip"), "--ledger", str(tmp_path / "warm.jsonl"))
    assert run_harness(*command).returncode == 0


def test_another_jaxlib_or_path_is_left_out_and_said(packed, program, tmp_path):
    done = run_harness("unpack", str(packed[0]), str(tmp_path / "a"), "--jaxlib", "0.9.1")
    assert done.returncode == 6
    assert "0.9.1 is to read it" in done.stdout
    assert not list((tmp_path / "a").glob("*-cache"))
    manifest = json.loads(zipfile.ZipFile(packed[0]).read(packs.MANIFEST))
    assert [one["path"] for one in manifest["entries"]] == ["", ""]
    place = tmp_path / "with_path.zip"
    where = {"JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "all"}
    command = ("pack", "-o", str(place), "--directory", str(tmp_path / "own"), "--", str(program))
    assert run_harness(*command, env=where).returncode == 0
    moved = run_harness("unpack", str(place), str(tmp_path / "b"))
    ended(moved, 6, "its key holds the path")
    (tmp_path / "own").rename(tmp_path / "kept")
    back = run_harness("unpack", str(place), str(tmp_path / "own"))
    ended(back, 0, "2 entries written")


def rewritten(place, to, change):
    """Copy a pack with other entries: `change` gets names and bytes, and returns them."""
    with zipfile.ZipFile(place) as old, zipfile.ZipFile(to, "w") as new:
        inside = {name: old.read(name) for name in old.namelist()}
        for name, data in change(inside).items():
            new.writestr(name, data)
    return to


def swapped(inside):
    one, two = (name for name in inside if name != packs.MANIFEST)
    return {**inside, one: inside[two], two: inside[one]}


def renamed(inside):
    """Each entry under the other's name, with a manifest that says so."""
    manifest = json.loads(inside[packs.MANIFEST])
    one, two = manifest["entries"]
    one["name"], two["name"] = two["name"], one["name"]
    return {**swapped(inside), packs.MANIFEST: json.dumps(manifest)}


def outside(inside):
    manifest = json.loads(inside[packs.MANIFEST])
    for number, one in enumerate(manifest["entries"]):
        name = f"../escaped_{number}-{'0' * 64}"
        inside[name + "-cache"] = inside.pop(one["name"] + "-cache")
        one["name"] = name
    return {**inside, packs.MANIFEST: json.dumps(manifest)}


def damaged(how):
    def change(inside):
        return {n: data if n == packs.MANIFEST else DAMAGE[how](data) for n, data in inside.items()}

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *((damaged(how), "not those that were packed") for how in DAMAGE),
        (swapped, "not those that were packed"),
        (renamed, "the module in it is"),
        (outside, "none that JAX gives"),
        (lambda inside: {packs.MANIFEST: inside[packs.MANIFEST]}, "cannot be read"),
    ],
)
def test_what_is_damaged_or_foreign_is_never_written(packed, tmp_path, change, said):
    place = rewritten(packed[0], tmp_path / "bad.zip", change)
    done = run_harness("unpack", str(place), str(tmp_path / "in" / "cache"))
    ended(done, 6, said)
    assert [path for path in (tmp_path / "in").rglob("*") if path.is_file()] == []


def test_what_is_no_pack_is_one_line(tmp_path, packed):
    (tmp_path / "text.zip").write_text("no pack")
    torn = packed[0].read_bytes()
    (tmp_path / "torn.zip").write_bytes(torn[: len(torn) // 2])
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("readme", "nothing")
    later = {packs.MANIFEST: json.dumps({"schema": 9, "made_at": 0, "entries": []})}
    rewritten(packed[0], tmp_path / "later.zip", lambda inside: later)
    for name in ("text", "torn", "other", "later", "missing"):
        done = run_harness("unpack", str(tmp_path / f"{name}.zip"), str(tmp_path / "cache"))
        ended(done, 2, "pack")
    (tmp_path / "file").touch()
    done = run_harness("unpack", str(packed[0]), str(tmp_path / "file"))
    ended(done, 5)


def test_a_program_without_a_cache_or_that_fails_is_said(program, tmp_path):
    done = run_harness("pack", "-o", str(tmp_path / "x.zip"), "--", str(program))
    ended(done, 5, "--directory")
    assert not (tmp_path / "x.zip").exists()
    command = ("pack", "-o", str(tmp_path / "x.zip"), "--", "-c", "raise SystemExit(9)")
    assert run_harness(*command).returncode == 9
    both = run_harness("pack", "-o", str(tmp_path / "x.zip"))
    ended(both, 2, "--ledger")
