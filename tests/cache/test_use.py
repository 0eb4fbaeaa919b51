"""What JAX will do with a directory: under which cap and settings, for whom, and with what room."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from harness.cache.finding import CacheFinding
from harness.cache.here import Room
from tests.cache.filled import CAP, checks, diagnose, entry_of, run_jax, spoil, the
from tests.cache.planted import EARLY

NIGHTLY = functools.partial(pytest.param, marks=pytest.mark.nightly)

FIXED = {"0.10.2": "problem", "0.11.0": "problem", "0.11.1": "note", "0.12.0.1": "note"}
"""How bad an entry without a time of use is, by the release that reads it."""


def follow(finding: CacheFinding) -> None:
    """Run the command of a fix."""
    words = shlex.split(finding.fix.command)
    subprocess.run([sys.executable, "-m", *words, "--no-put-cost"], check=True)


def orphan(directory: Path) -> Path:
    """Add the entry of a program that is gone, without a time of use."""
    gone = directory / f"jit_first-{'0' * 64}-cache"
    shutil.copy(entry_of(directory, "jit_first"), gone)
    return gone


@pytest.mark.parametrize("release", ["0.10.2", *map(NIGHTLY, list(FIXED)[1:])])
def test_a_cap_that_is_given_is_used_for_a_directory_that_shows_none(fill, release):
    directory = fill()
    diagnosis = diagnose(directory, CAP, release=release)
    finding = the(diagnosis, "orphaned")
    assert (len(finding.entries), finding.severity) == (3, FIXED[release])
    assert diagnosis.exit_code == int(FIXED[release] == "problem")
    assert ("missing-times" in diagnosis.here.blocked) == (FIXED[release] == "problem")
    assert "orphaned" not in checks(diagnose(directory, release=release))
    assert "orphaned" not in checks(diagnose(fill(CAP), CAP, release=release))


def test_a_cap_of_the_environment_is_used_as_one_that_is_given(fill, says, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", str(CAP))
    options = "--no-put-cost", "--jax=0.10.2", "--format=json"
    seen = json.loads(says("doctor", fill(), *options, code=1))
    assert (seen["state"], seen["here"]["blocked"]) == ("problem", ["missing-times"])
    assert seen["here"]["settings"]["max_size_bytes"] == CAP


@pytest.mark.parametrize(("cap", "entries"), [(0, 0), (3000, 1), (CAP, 0)])
def test_a_cap_that_nothing_fits_under_is_a_problem(fill, cap, entries):
    directory = fill(CAP)
    large = entry_of(directory, "jit_second")
    other = large.with_name(f"jit_other-{'0' * 64}")
    for ending in ("-cache", "-atime"):
        name = large.name.removesuffix("-cache") + ending
        shutil.copy(directory / name, f"{other}{ending}")
    for path in directory.glob("*-cache"):
        os.truncate(path, 3001 if path == large else 3000)
    over = [f for f in diagnose(directory, cap).findings if f.check == "over-cap"]
    assert [len(one.entries) for one in over] == ([] if cap == CAP else [entries])
    assert all(one.severity == "problem" for one in over)


def test_what_an_orphan_of_a_gone_program_keeps_from_writing_is_written_again(tmp_path):
    directory = tmp_path / "cache"
    run_jax(directory, cap=CAP, functions=1)
    orphan(directory)
    young = the(diagnose(directory, release="0.10.2", settle_s=3600), "orphaned")
    assert (young.severity, young.fix.kind) == ("unsettled", "look-again")
    assert bool(run_jax(directory, cap=CAP, functions=2)["warned"]) == EARLY
    command = young.fix.command + " --jax 0.10.2"
    follow(CacheFinding("orphaned", (), "note", "none", type(young.fix)("repair", command)))
    after = run_jax(directory, cap=CAP)
    written = 2 if EARLY else 1
    assert after == {"hits": 3 - written, "written": written, "warned": []}
    assert diagnose(directory, release="0.10.2", settle_s=0).state == "healthy"


@pytest.mark.nightly
@pytest.mark.parametrize(("ages_s", "state"), [((0, 0), "unsettled"), ((0, 99), "problem")])
def test_one_old_orphan_makes_all_certain(fill, ages_s, state):
    directory = fill(CAP)
    orphans = [orphan(directory), directory / f"{spoil(directory, 'orphaned', 'jit_third')}-cache"]
    for path, age_s in zip(orphans, ages_s, strict=True):
        os.utime(path, (time.time() - age_s,) * 2)
    diagnosis = diagnose(directory, release="0.10.2")
    assert len(the(diagnosis, "orphaned").entries) == 2
    assert diagnosis.state == state


@pytest.mark.parametrize("kind", ["torn", *map(NIGHTLY, ("empty", "garbage"))])
def test_a_copy_with_new_times_is_repaired_by_the_command_that_is_named(fill, tmp_path, says, kind):
    directory = fill(CAP)
    name = spoil(directory, kind)
    copy = shutil.copytree(directory, tmp_path / "restored", copy_function=shutil.copyfile)
    seen = json.loads(says("doctor", copy, "--no-put-cost", "--format=json", "--repair"))
    assert (seen["state"], seen["repaired"]["moved"]) == ("unsettled", [])
    (finding,) = (f for f in seen["findings"] if f["check"] == kind)
    assert finding["fix"]["command"].endswith("--repair --settle 0")
    words = shlex.split(finding["fix"]["command"])[2:]
    seen = json.loads(says(*words, "--no-put-cost", "--format=json"))
    assert (seen["state"], seen["repaired"]["moved"]) == ("healthy", [name])


@pytest.mark.parametrize(
    ("variables", "blocked", "text"),
    [
        ({}, [], "took 1 s or more"),
        NIGHTLY({"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}, [], "took 0 s or more"),
        NIGHTLY({"JAX_ENABLE_COMPILATION_CACHE": "False"}, ["disabled"], "writes nothing"),
        NIGHTLY({"JAX_COMPILATION_CACHE_MAX_SIZE": "0"}, ["cap-of-zero"], "writes nothing"),
    ],
)
def test_an_empty_or_missing_directory_is_not_called_healthy(
    tmp_path, says, monkeypatch, variables, blocked, text
):
    for name in ("MIN_COMPILE_TIME_SECS", "MIN_ENTRY_SIZE_BYTES"):
        monkeypatch.delenv(f"JAX_PERSISTENT_CACHE_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    cap = int(variables.get("JAX_COMPILATION_CACHE_MAX_SIZE", -1))
    diagnosis = diagnose(tmp_path, cap)
    assert list(diagnosis.here.blocked) == blocked
    assert the(diagnosis, "no-entries").fix.command.startswith("harness cache ledger")
    assert cap == 0 or (diagnosis.state, diagnosis.exit_code) == ("empty", 0)
    says("inspect", tmp_path, said=text)
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
    "the directory of another": (-1, "directory", "note", "not-stored"),
    "with a cap, no lock can be made": (-1, "capped", "problem", "reads-fail"),
    "with a cap, the lock is another's": (CAP, "lock", "problem", "reads-fail"),
    "with a cap, the times of use are another's": (CAP, "times", "problem", "reads-fail"),
    "all can be written": (CAP, "", "", ""),
}
ONCE = "with a cap, no lock can be made"


@pytest.mark.parametrize("name", [ONCE, *(NIGHTLY(one) for one in CASES if one != ONCE)])
@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_what_the_asking_user_may_not_do_is_reported(fill, name):
    cap, what, severity, consequence = CASES[name]
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
        seen = without_rights(directory, f"--max-size={cap if what != 'capped' else CAP}")
        directory.chmod(0o755)
    rights = [f for f in seen["findings"] if f["check"] == "rights"]
    expected = [(severity, consequence)] if severity else []
    assert [(one["severity"], one["consequence"]) for one in rights] == expected
    assert [len(one["entries"]) for one in rights] == ([3 * (what == "times")] if what else [])
    assert seen["here"]["reads"] == (what not in ("capped", "lock"))


def test_without_etils_a_file_address_is_a_folder_of_that_name(fill, tmp_path, says, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directory = fill()
    says("doctor", f"file://{directory}", code=2, said="a folder named `file:`")
    here = shutil.copytree(directory, Path(f"file://{directory}"))
    seen = json.loads(says("doctor", f"file://{directory}", "--format=json"))
    (finding,) = (f for f in seen["findings"] if f["check"] == "file-address")
    assert (finding["severity"], seen["state"]) == ("note", "healthy")
    assert str(here.resolve()).endswith("/file:" + str(directory))


def test_what_a_cap_costs_is_measured_only_under_one(fill, says):
    for cap, measured in ((-1, False), (CAP, True)):
        seen = json.loads(says("doctor", fill(cap), "--format=json"))
        assert (seen["put_cost"] is not None) == measured


FULL = """
set -e
mount -t tmpfs -o size=1m,nr_inodes={files},mode=755 tmpfs {disk}
cp -r {cache}/. {disk}/
test {full} = 0 || cat /dev/zero > {disk}/ballast 2> /dev/null || true
{python} -m harness cache doctor {disk} --no-put-cost --format=json --settle 0 > {out} || true
"""


@pytest.mark.parametrize(
    ("full", "files", "check"),
    [(1, 100, "no-room"), NIGHTLY(0, 4, "no-room"), NIGHTLY(0, 100, "")],
)
def test_a_disk_without_room_for_the_next_entry_is_a_problem(fill, tmp_path, full, files, check):
    disk, out = tmp_path / "disk", tmp_path / "out.json"
    disk.mkdir()
    places = {"disk": disk, "cache": fill(), "out": out, "python": sys.executable}
    script = FULL.format(full=full, files=files, **places)
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small file system can be made here: {done.stderr}")
    seen = json.loads(out.read_text())
    problems = [f for f in seen["findings"] if f["severity"] != "note"]
    assert [one["check"] for one in problems] == ([check] if check else [])
    assert ("no-room" in seen["here"]["blocked"]) == bool(check)
    if check:
        facts = problems[0]["facts"]
        assert facts["free_bytes"] < facts["needed_bytes"] or facts["free_files"] == 0


def test_the_least_of_what_is_free_and_of_what_a_quota_leaves_counts():
    assert Room(5000, 10, 300, None).bytes_left == 300
    assert Room(200, 10, 300, 0).bytes_left == 200
    assert (Room(5000, 10, 300, 0).files_left, Room(5000, None).files_left) == (0, None)
