"""What the doctor says of how a directory is used: with which cap and settings, and by whom."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from harness.cache.ailment import CacheFinding
from tests.cache.filled import CAP, diagnose, entry_of, kinds, run_jax, spoil, the
from tests.cache.planted import EARLY

NIGHTLY = functools.partial(pytest.param, marks=pytest.mark.nightly)

FIXED = {"0.10.2": "ailing", "0.11.0": "ailing", "0.11.1": "note", "0.12.0.1": "note"}
"""How bad an entry without a time of use is, by the release that reads it."""


def follow(finding: CacheFinding) -> None:
    """Run the command of a remedy."""
    (command,) = re.findall("`(for f in .*)`", finding.remedy)
    subprocess.run(["sh", "-c", command], check=True)


def orphan(directory: Path) -> Path:
    """Add the entry of a program that is gone, without a time of use."""
    gone = directory / f"jit_first-{'0' * 64}-cache"
    shutil.copy(entry_of(directory, "jit_first"), gone)
    return gone


@pytest.mark.parametrize("release", FIXED)
def test_a_cap_that_is_given_is_used_for_a_directory_that_shows_none(fill, release):
    directory = fill()
    diagnosis = diagnose(directory, jax=release, max_size_bytes=CAP)
    assert len(the(diagnosis, "orphaned").entries) == 3
    assert the(diagnosis, "orphaned").severity == FIXED[release]
    assert diagnosis.exit_code == int(FIXED[release] == "ailing")
    assert kinds(diagnose(directory, jax=release)) == set()
    assert kinds(diagnose(fill(CAP), jax=release, max_size_bytes=CAP)) == set()


def test_a_cap_of_the_environment_is_used_as_one_that_is_given(fill, says, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", str(CAP))
    words = "--no-put-cost", "--jax=0.10.2", "--format=json"
    assert json.loads(says("doctor", fill(), *words, code=1))["state"] == "ailing"


@pytest.mark.parametrize(("cap", "entries"), [(0, 0), (3000, 1), (CAP, 0)])
def test_a_cap_that_nothing_fits_under_ails(fill, cap, entries):
    directory = fill(CAP)
    large = entry_of(directory, "jit_second")
    other = large.with_name(f"jit_other-{'0' * 64}")
    for ending in ("-cache", "-atime"):
        name = large.name.removesuffix("-cache") + ending
        shutil.copy(directory / name, f"{other}{ending}")
    for path in directory.glob("*-cache"):
        os.truncate(path, 3001 if path == large else 3000)
    over = [f for f in diagnose(directory, max_size_bytes=cap).findings if f.kind == "over-cap"]
    assert [len(one.entries) for one in over] == ([] if cap == CAP else [entries])
    assert all(one.severity == "ailing" for one in over)


def test_what_an_orphan_of_a_gone_program_keeps_from_writing_is_written_again(tmp_path):
    directory = tmp_path / "cache"
    run_jax(directory, cap=CAP, functions=1)
    orphan(directory)
    young = diagnose(directory, jax="0.10.2", settle_s=3600)
    assert (young.state, the(young, "orphaned").severity) == ("unsettled", "unsettled")
    assert "`--settle 0`" in the(young, "orphaned").remedy
    assert bool(run_jax(directory, cap=CAP, functions=2)["warned"]) == EARLY
    follow(the(young, "orphaned"))
    after = run_jax(directory, cap=CAP)
    written = 2 if EARLY else 1
    assert after == {"hits": 3 - written, "written": written, "warned": []}
    assert diagnose(directory, jax="0.10.2", settle_s=0).state == "healthy"


@pytest.mark.nightly
@pytest.mark.parametrize(("ages_s", "state"), [((0, 0), "unsettled"), ((0, 99), "ailing")])
def test_one_old_orphan_makes_all_certain(fill, ages_s, state):
    directory = fill(CAP)
    orphans = [orphan(directory), directory / f"{spoil(directory, 'orphaned', 'jit_third')}-cache"]
    for path, age_s in zip(orphans, ages_s, strict=True):
        os.utime(path, (time.time() - age_s,) * 2)
    diagnosis = diagnose(directory, jax="0.10.2")
    assert len(the(diagnosis, "orphaned").entries) == 2
    assert diagnosis.state == state


@pytest.mark.parametrize("kind", ["torn", *map(NIGHTLY, ("empty", "garbage"))])
def test_a_copy_with_new_times_is_healed_by_the_command_that_is_named(fill, tmp_path, says, kind):
    directory = fill(CAP)
    name = spoil(directory, kind)
    copy = shutil.copytree(directory, tmp_path / "restored", copy_function=shutil.copyfile)
    words = "doctor", copy, "--no-put-cost", "--format=json", "--quarantine"
    told = json.loads(says(*words))
    assert (told["state"], told["moved"]["names"]) == ("unsettled", [])
    assert "`--settle 0`" in told["diagnosis"]["findings"][0]["remedy"]
    told = json.loads(says(*words, "--settle", "0"))
    assert (told["state"], told["moved"]["names"]) == ("healthy", [name])


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({}, "took 1.0 s or more"),
        NIGHTLY({"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}, "took 0 s or more"),
        NIGHTLY({"JAX_ENABLE_COMPILATION_CACHE": "False"}, "writes nothing"),
        NIGHTLY({"JAX_COMPILATION_CACHE_MAX_SIZE": "0"}, "writes nothing"),
    ],
)
def test_an_empty_or_missing_directory_is_not_called_healthy(
    tmp_path, says, monkeypatch, variables, text
):
    for name in ("MIN_COMPILE_TIME_SECS", "MIN_ENTRY_SIZE_BYTES"):
        monkeypatch.delenv(f"JAX_PERSISTENT_CACHE_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (diagnose(tmp_path).state, diagnose(tmp_path).exit_code) == ("empty", 0)
    finding = the(diagnose(tmp_path), "no-entries")
    assert (text in finding.evidence, "harness cache ledger" in finding.remedy) == (True, True)
    says("inspect", tmp_path, "--max-size=-1", said=text)
    says("doctor", tmp_path / "nowhere", code=2, said=text)


def without_rights(*words: object) -> dict:
    """Ask the doctor as a user whom modes bind; this one, if it is root, without its rights."""
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    command = [*drop, sys.executable, "-m", "harness", "cache", "doctor", *map(str, words)]
    done = subprocess.run(
        [*command, "--no-put-cost", "--format=json"], capture_output=True, text=True
    )
    if not done.stdout:
        pytest.skip(f"rights cannot be dropped here: {done.stderr}")
    return json.loads(done.stdout)


CASES = {
    "the directory of another": (-1, "directory", "note"),
    "with a cap, no lock can be made": (-1, "capped", "ailing"),
    "with a cap, the lock is another's": (CAP, "lock", "ailing"),
    "with a cap, the times of use are another's": (CAP, "times", "ailing"),
    "all can be written": (CAP, "", ""),
}
ONCE = "with a cap, no lock can be made"


@pytest.mark.parametrize("name", [ONCE, *(NIGHTLY(one) for one in CASES if one != ONCE)])
@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_what_the_asking_user_may_not_do_is_reported(fill, name):
    cap, what, severity = CASES[name]
    with tempfile.TemporaryDirectory() as place:
        directory = shutil.copytree(fill(cap), Path(place, "cache"))
        (directory / ".lockfile").touch() if cap > 0 else None
        kinds = {"lock": [directory / ".lockfile"], "times": [*directory.glob("*-atime")]}
        for path in kinds.get(what, [directory] if what else []):
            path.chmod(0o555)
            if os.geteuid() == 0:
                os.chown(path, 1234, 1234)
        if what == "lock":
            directory.chmod(0o755)
        told = without_rights(directory, f"--max-size={cap if what != 'capped' else CAP}")
        directory.chmod(0o755)
    rights = [f for f in told["diagnosis"]["findings"] if f["kind"] == "rights"]
    assert [one["severity"] for one in rights] == ([severity] if severity else [])
    assert [len(one["entries"]) for one in rights] == ([3 * (what == "times")] if what else [])


def test_without_etils_a_file_address_is_a_folder_of_that_name(fill, tmp_path, says, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directory = fill()
    says("doctor", f"file://{directory}", code=2, said="a folder named `file:`")
    here = shutil.copytree(directory, Path(f"file://{directory}"))
    told = json.loads(says("doctor", f"file://{directory}", "--format=json"))
    (finding,) = (f for f in told["diagnosis"]["findings"] if f["kind"] == "file-address")
    assert (finding["severity"], told["state"]) == ("note", "healthy")
    assert str(here.resolve()).endswith("/file:" + str(directory))


def test_what_a_cap_costs_is_measured_only_under_one(fill, says):
    for cap, measured in ((-1, False), (CAP, True)):
        told = json.loads(says("doctor", fill(cap), "--format=json"))
        assert (told["diagnosis"]["put_cost"] is not None) == measured
