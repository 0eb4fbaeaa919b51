from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
import time
import zlib

import pytest

from harness.cache import directory_ailments, doctor, entry, put_cost
from harness.cache.directory import open_directory
from harness.cache.survey import survey
from harness.errors import HarnessError
from tests.cache.filled import (
    CAP,
    diagnose,
    entry_of,
    kinds,
    run_harness,
    spoil,
    the,
)


@pytest.mark.parametrize("cap", [-1, CAP])
def test_a_cache_that_jax_filled_is_healthy(fill, cap):
    diagnosis = diagnose(fill(cap))
    assert (diagnosis.state, kinds(diagnosis)) == ("healthy", set())


@pytest.mark.parametrize("kind", ["empty", "torn", "garbage", "orphaned"])
def test_a_bad_entry_makes_the_cache_ail(fill, kind):
    directory = fill(CAP)
    name = spoil(directory, kind)
    diagnosis = diagnose(directory)
    assert (diagnosis.state, diagnosis.exit_code, kinds(diagnosis)) == ("ailing", 1, {kind})
    assert the(diagnosis, kind).entries == (name,)
    assert "--quarantine" in the(diagnosis, kind).remedy


def test_an_entry_without_a_time_of_use_is_no_orphan_where_there_is_no_cap(fill):
    assert kinds(diagnose(fill(-1))) == set()


@pytest.mark.parametrize("kind", ["empty", "torn", "orphaned"])
def test_a_young_bad_entry_is_noted_and_left_to_its_writer(fill, kind):
    directory = fill(CAP)
    os.utime(directory / f"{spoil(directory, kind)}-cache")
    seen = survey(open_directory(str(directory)))
    diagnosis = doctor.diagnose(seen)
    assert (diagnosis.state, the(diagnosis, kind).settled) == ("healthy", False)
    assert re.search("may still be on its way: look again", the(diagnosis, kind).evidence)
    assert doctor.to_quarantine(seen, diagnosis) == []
    assert doctor.to_quarantine(seen, doctor.diagnose(seen, settle_s=0)) != []


def test_the_same_executable_under_two_keys_is_a_duplicate(fill):
    directory = fill()
    path = entry_of(directory, "jit_first")
    # Packed otherwise, and with another compile time: the executable counts.
    same = b"\0\0\0\x09" + zlib.decompress(path.read_bytes())[4:]
    path.with_name("jit_first-" + "0" * 64 + "-cache").write_bytes(zlib.compress(same, 1))
    diagnosis = diagnose(directory)
    found = the(diagnosis, "duplicate")
    assert {name.partition("-")[0] for name in found.entries} == {"jit_first"}
    assert len(found.entries) == 2
    assert re.search("2 keys hold the same executable", found.evidence)
    assert diagnosis.state == "healthy"


def test_other_contents_of_the_same_module_are_no_duplicate(fill):
    directory = fill()
    path = entry_of(directory, "jit_first")
    other = zlib.decompress(path.read_bytes()) + b"more"
    path.with_name("jit_first-" + "0" * 64 + "-cache").write_bytes(zlib.compress(other))
    assert kinds(diagnose(directory)) == set()


def test_what_was_never_read_is_noted_once_with_its_source(fill):
    found = the(diagnose(fill(CAP)), "never-read")
    assert (found.severity, "of 3 entries" in found.evidence) == (
        "note",
        True,
    )


def test_entries_of_another_compression_or_format_are_foreign(fill, monkeypatch):
    monkeypatch.setattr(entry, "zstd_library", lambda: None)
    directory = fill()
    (directory / f"jit_a-{'a' * 64}-cache").write_bytes(entry.ZSTD_MAGIC + bytes(50))
    (directory / f"jit_b-{'b' * 64}-cache").write_bytes(zlib.compress(b"\0\0\0\1" + b"nothing"))
    other = b"\0\0\0\1\x0d\x08\x02\x12\x09pjrt_ifrt rest"
    (directory / f"jit_c-{'c' * 64}-cache").write_bytes(zlib.compress(other))
    diagnosis = diagnose(directory)
    evidence = [f.evidence for f in diagnosis.findings if f.kind == "foreign-version"]
    assert [
        bool(re.search(*pair))
        for pair in zip(
            ["zstd, which this Python .* cannot unpack", "no executable's header", "`pjrt_ifrt 2`"],
            evidence,
            strict=True,
        )
    ] == [True] * 3
    assert diagnosis.state == "healthy"


def test_a_time_ahead_of_the_clock_ails_under_a_cap_only(fill):
    for cap, state in ((-1, "healthy"), (CAP, "ailing")):
        directory = fill(cap)
        path = entry_of(directory, "jit_first")
        later = time.time() + 3600
        os.utime(path, (later, later))
        if cap != -1:
            used = path.with_name(path.name.removesuffix("-cache") + "-atime")
            used.write_bytes(int(later * 1e9).to_bytes(8, "little"))
        diagnosis = diagnose(directory)
        assert (kinds(diagnosis), diagnosis.state) == ({"future"}, state)
        assert re.search(r"3\d{3} s ahead", the(diagnosis, "future").evidence)


def test_a_directory_that_everyone_can_write_is_unusable(fill):
    directory = fill()
    directory.chmod(0o777)
    done = run_harness("doctor", str(directory), "--no-put-cost")
    assert done.returncode == 5
    assert re.search(r"unusable: others-can-write\n.*everyone .* code that JAX runs", done.stdout)
    directory.chmod(0o1777)  # sticky: nobody can replace an entry, but everyone can plant one
    assert diagnose(directory).state == "unusable"


def test_a_parent_that_everyone_can_write_is_found_unless_it_is_sticky(fill):
    directory = fill()
    mode = stat.S_IMODE(directory.parent.stat().st_mode)
    directory.parent.chmod(0o777)
    try:
        assert the(diagnose(directory), "others-can-write").severity == "unusable"
        directory.parent.chmod(0o1777)
        assert kinds(diagnose(directory)) == set()
    finally:
        directory.parent.chmod(mode)


def test_an_entry_that_everyone_can_write_is_found(fill):
    directory = fill()
    entry_of(directory, "jit_first").chmod(0o666)
    found = the(diagnose(directory), "others-can-write")
    assert (found.severity, len(found.entries)) == ("unusable", 1)


def test_a_group_or_an_owner_who_can_write_is_named(fill, monkeypatch):
    directory = fill()
    directory.chmod(0o775)
    monkeypatch.setattr(directory_ailments, "is_shared", lambda gid, uid: True)
    found = the(diagnose(directory), "others-can-write")
    assert (found.severity, "the group" in found.evidence) == ("ailing", True)
    directory.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(directory, 4321, 4321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
    found = next(f for f in diagnose(directory).findings if f.kind == "others-can-write")
    assert (found.severity, "whose it is, can write" in found.evidence) == ("ailing", True)


def test_a_private_group_is_nobody_else():
    assert not directory_ailments.is_shared(0, 0)
    assert directory_ailments.is_shared(
        987654, 0
    )  # a group without a name: nobody knows who is in it


def test_a_missing_filelock_is_found_under_a_cap_only(fill, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert kinds(diagnose(fill(CAP))) == {"no-filelock"}
    plain = fill(-1)
    assert kinds(diagnose(plain)) == set()
    assert kinds(diagnose(plain, capped=True)) == {"no-filelock"}


def test_a_write_grows_with_the_entries_and_is_measured_elsewhere(fill, tmp_path):
    directory = fill(CAP)
    before = sorted(path.name for path in directory.iterdir())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    cost = put_cost.measure(3000, scratch)
    assert (cost.entries, cost.measured_entries, cost.where) == (3000, 3000, str(scratch))
    assert cost.capped_s > 5 * cost.first_s
    assert list(scratch.iterdir()) == []
    assert sorted(path.name for path in directory.iterdir()) == before
    slow = doctor.diagnose(
        survey(open_directory(str(directory))),
        put_cost=put_cost.PutCost(20_000, 20_000, 0.5, 0.001, "/scratch"),
    )
    assert (slow.state, kinds(slow)) == ("ailing", {"slow-put"})
    assert re.search(r"500 ms at 20000 entries, 1.0 ms at none", the(slow, "slow-put").evidence)


def test_a_write_that_cannot_be_measured_does_not_hide_the_findings(fill, tmp_path, monkeypatch):
    directory = fill(CAP)
    spoil(directory, "torn")
    done = run_harness("doctor", str(directory), "--scratch", str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "ailing: torn" in done.stdout
    assert re.search("could not be measured: .* --no-put-cost", done.stdout)
    (tmp_path / "filelock.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(HarnessError, match=r"own write failed .*install.*filelock.* --no-put-cost"):
        put_cost.measure(1, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["doctor", "{tmp}/nowhere"], 5, "There is no directory"),
        (["doctor", "{tmp}/file"], 5, "file is a file"),
        (["inspect", "{tmp}/nowhere"], 5, "There is no directory"),
        (["doctor"], 2, "DIR"),
    ],
)
def test_a_place_that_is_no_cache_is_one_error_and_an_exit_code(tmp_path, arguments, code, text):
    (tmp_path / "file").touch()
    done = run_harness(*(part.format(tmp=tmp_path) for part in arguments))
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_prints_json(fill):
    directory = fill(CAP)
    name = spoil(directory, "torn")
    done = run_harness("doctor", str(directory), "--json", "--quarantine")
    told = json.loads(done.stdout)
    assert told["moved"]["names"] == [name]
    assert told["diagnosis"]["state"] == "ailing"
    assert told["diagnosis"]["put_cost"]["entries"] == 3
    assert (told["state"], done.returncode) == ("healthy", 0)


def test_asking_for_help_loads_neither_jax_nor_pandas():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "harness", "cache", "doctor", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert {"jax", "pandas"} & loaded == set()
    assert "Exit codes: 0 healthy" in done.stdout


def test_an_entry_is_as_old_as_when_it_was_read_however_long_the_rest_takes(fill):
    directory = fill()
    name = spoil(directory, "torn")
    os.utime(directory / f"{name}-cache")
    seen = survey(open_directory(str(directory)), now=time.time() + 60)
    assert not the(doctor.diagnose(seen), "torn").settled


def test_a_use_within_the_clocks_differences_is_no_time_ahead(fill):
    directory = fill(CAP)
    path = entry_of(directory, "jit_first")
    os.utime(path, (time.time() + 3600,) * 2)
    used = path.with_name(path.name.removesuffix("-cache") + "-atime")
    used.write_bytes(int((time.time() + 5) * 1e9).to_bytes(8, "little"))
    diagnosis = diagnose(directory)
    assert (the(diagnosis, "future").severity, diagnosis.state) == ("note", "healthy")


def test_a_link_is_nothing_that_everyone_can_overwrite(fill):
    directory = fill()
    (directory / "jit_gone-cache").symlink_to("nowhere")
    assert kinds(diagnose(directory)) == {"unreadable"}
