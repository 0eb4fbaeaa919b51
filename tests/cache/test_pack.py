from __future__ import annotations

import json
import os
import zipfile

import pytest

from harness.cache import pack as packs
from harness.cache.ledger import read
from tests.cache.filled import CAP, DAMAGE, run_jax
from tests.forks import harness

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
    words = "cache", "pack", "-o", place, "--directory", directory, "--", program
    done = harness(*words, environment={**os.environ, **WITHOUT_PATH})
    assert (done.returncode, "2 entries" in done.stderr) == (0, True), done.stderr
    return place, directory


@pytest.fixture
def outcomes(program, tmp_path, says, monkeypatch):
    """Run the program with a cache; return what became of its requests, and its ledger."""

    def run(directory, **settings):
        where = {"JAX_COMPILATION_CACHE_DIR": str(directory), **WITHOUT_PATH, **settings}
        book = tmp_path / f"{directory.name}.jsonl"
        with monkeypatch.context() as set_up:
            for name, text in where.items():
                set_up.setenv(name, text)
            says("ledger", "-o", book, "--", program)
        return [event.outcome for event in read(book).events], book

    return run


@pytest.mark.parametrize("capped", [False, True])
def test_what_is_unpacked_elsewhere_is_hit(packed, outcomes, tmp_path, says, capped):
    directory = tmp_path / "elsewhere"
    limit = {"JAX_COMPILATION_CACHE_MAX_SIZE": str(CAP)} if capped else {}
    if capped:  # another program filled it: every write fails where an entry lacks its time of use
        run_jax(directory, cap=CAP, functions=1)
    told = json.loads(says("unpack", packed[0], directory, "--format=json"))
    assert len(told["unpacked"]["written"]) == 2
    assert outcomes(directory, **limit)[0] == ["hit", "hit"]
    if capped:
        assert run_jax(directory, cap=CAP)["warned"] == []
    says("unpack", packed[0], directory, said="2 were there already")
    assert not list(directory.glob(packs.PARTIAL + "*"))


def test_a_ledger_says_what_is_packed_and_what_is_not(packed, outcomes, tmp_path, says, command):
    found, book = outcomes(tmp_path / "cold")
    assert set(found) == {"unwritten"}
    code, _, said = command("cache", "pack", "-o", tmp_path / "b.zip", "--ledger", book)
    assert (code, "0 entries" in said) == (6, True)
    # One line where both took as long, else two.
    assert all(told in said for told in ("jit_one", "jit_two", "below the time threshold"))
    found, book = outcomes(packed[1])
    assert found == ["hit", "hit"]
    says("pack", "-o", tmp_path / "c.zip", "--ledger", book, said="2 entries")


def test_another_jaxlib_or_path_is_left_out_and_said(packed, program, tmp_path, says, monkeypatch):
    words = packed[0], tmp_path / "a", "--jaxlib", "0.9.1"
    says("unpack", *words, code=6, said="0.9.1 is to read it")
    assert not list((tmp_path / "a").glob("*-cache"))
    manifest = json.loads(zipfile.ZipFile(packed[0]).read(packs.MANIFEST))
    assert [one["path"] for one in manifest["entries"]] == ["", ""]
    place, own = tmp_path / "with_path.zip", tmp_path / "own"
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES", "all")
    says("pack", "-o", place, "--directory", own, "--", program)
    says("unpack", place, tmp_path / "b", code=6, said="its key holds the path")
    own.rename(tmp_path / "kept")
    says("unpack", place, own, said="2 entries written")


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
def test_what_is_damaged_or_foreign_is_never_written(packed, tmp_path, says, change, said):
    place = rewritten(packed[0], tmp_path / "bad.zip", change)
    says("unpack", place, tmp_path / "in" / "cache", code=6, said=said)
    assert [path for path in (tmp_path / "in").rglob("*") if path.is_file()] == []


def test_what_is_no_pack_is_one_line(tmp_path, packed, says):
    (tmp_path / "text.zip").write_text("no pack")
    torn = packed[0].read_bytes()
    (tmp_path / "torn.zip").write_bytes(torn[: len(torn) // 2])
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("readme", "nothing")
    later = {packs.MANIFEST: json.dumps({"schema": 9, "made_at": 0, "entries": []})}
    rewritten(packed[0], tmp_path / "later.zip", lambda inside: later)
    for name in ("text", "torn", "other", "later"):
        place = tmp_path / f"{name}.zip"
        says("unpack", place, tmp_path / "cache", code=4, said=f"{place} is no pack")
    says("unpack", tmp_path / "missing", tmp_path / "cache", code=2, said="There is no file")
    (tmp_path / "file").touch()
    says("unpack", packed[0], tmp_path / "file", code=5)


def test_a_program_without_a_cache_or_that_fails_is_said(program, tmp_path, says):
    place = tmp_path / "x.zip"
    says("pack", "-o", place, "--", program, code=5, said="--directory")
    assert not place.exists()
    says("pack", "-o", place, "--", "-c", "raise SystemExit(9)", code=9)
    says("pack", "-o", place, code=2, said="--ledger")
