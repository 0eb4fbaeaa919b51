"""Each ailment is planted in a cache that JAX filled, and found alone; a healthy one is quiet."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import struct
import time
import zlib

import pytest
from jax._src.compilation_cache import compress_executable, decompress_executable

from harness.cache import directory_ailments, doctor, entry, put_cost
from harness.cache.directory import open_directory
from harness.cache.doctor import AILMENTS
from harness.cache.loads import load
from harness.cache.survey import survey
from harness.engine import child
from harness.errors import HarnessError
from tests.cache.filled import (
    CAP,
    backdate,
    diagnose,
    entry_of,
    kinds,
    run_harness,
    run_jax,
    spoil,
    the,
)

NOBODY = 2**32 - 1
HEADER = b"\x0d\x08\x03\x12\x09pjrt_ifrt"


def link_to_nowhere(directory, monkeypatch):
    (directory / f"jit_gone-{'0' * 64}-cache").symlink_to("nowhere")


def unpacks_to_much(directory, monkeypatch):
    monkeypatch.setattr(entry, "MOST_BYTES", 1 << 20)
    path = entry_of(directory, "jit_first")
    path.write_bytes(zlib.compress(bytes(4) + HEADER + bytes(5 << 20)))


def same_executable(directory, monkeypatch):
    path = entry_of(directory, "jit_first")
    # With another compile time: the executable counts.
    same = b"\0\0\0\x09" + decompress_executable(path.read_bytes())[4:]
    path.with_name(f"jit_first-{'0' * 64}-cache").write_bytes(compress_executable(same))


def other_format(directory, monkeypatch):
    other = b"\0\0\0\1\x0d\x08\x02\x12\x09pjrt_ifrt rest"
    (directory / f"jit_c-{'c' * 64}-cache").write_bytes(zlib.compress(other))


def used_tomorrow(directory, monkeypatch):
    path = entry_of(directory, "jit_first")
    used = path.with_name(path.name.removesuffix("-cache") + "-atime")
    used.write_bytes(int((time.time() + 3600) * 1e9).to_bytes(8, "little"))


def without_filelock(directory, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def another_program(directory, monkeypatch):
    """The program of one function under the name of another: JAX would run it."""
    data = entry_of(directory, "jit_second").read_bytes()
    entry_of(directory, "jit_first").write_bytes(data)


def an_executable_without_its_end(directory, monkeypatch):
    path = entry_of(directory, "jit_first")
    whole = decompress_executable(path.read_bytes())
    path.write_bytes(compress_executable(whole[:-40]))


def other_processor(directory, monkeypatch):
    path = entry_of(directory, "jit_first")
    whole = decompress_executable(path.read_bytes())
    features = b"+sse2,+avx512er,-avx512pf"
    at = whole.index(b"-unknown-linux-gnu") + len(b"-unknown-linux-gnu")
    told = b"\x12\x03knl\x1a" + bytes([len(features)]) + features
    path.write_bytes(compress_executable(whole[:at] + told + whole[at:]))


def spoiled(kind):
    return lambda directory, monkeypatch: spoil(directory, kind)


PLANTED = {
    "empty": (CAP, spoiled("empty"), "ailing"),
    "torn": (CAP, spoiled("torn"), "ailing"),
    "garbage": (CAP, spoiled("garbage"), "ailing"),
    "wrong-module": (-1, another_program, "unusable"),
    "unloadable": (-1, an_executable_without_its_end, "ailing"),
    "foreign-processor": (-1, other_processor, "ailing"),
    "orphaned": (CAP, spoiled("orphaned"), "healthy"),
    "unreadable": (-1, link_to_nowhere, "ailing"),
    "unchecked": (-1, unpacks_to_much, "healthy"),
    "duplicate": (-1, same_executable, "healthy"),
    "never-read": (CAP, lambda directory, monkeypatch: None, "healthy"),
    "foreign-version": (-1, other_format, "healthy"),
    "future": (CAP, used_tomorrow, "ailing"),
    "others-can-write": (-1, lambda directory, monkeypatch: directory.chmod(0o777), "unusable"),
    "no-filelock": (CAP, without_filelock, "ailing"),
    "slow-put": (CAP, lambda directory, monkeypatch: None, "ailing"),
}
"""By ailment: the cap of the cache, what is done to it, and the state that it is then in."""

SLOW = put_cost.PutCost(20_000, 20_000, 0.5, 0.001, "/scratch")


@pytest.mark.parametrize("kind", AILMENTS)
def test_an_ailment_that_is_planted_is_found_alone(fill, kind, monkeypatch):
    cap, plant, state = PLANTED[kind]
    directory = fill(cap)
    plant(directory, monkeypatch)
    if kind == "foreign-processor" and not entry.lacking_features(["avx512er"]):
        pytest.skip("this system does not say what its processor has")
    names = [one.name for one in survey(open_directory(str(directory))).entries]
    refused = load(directory, names).refused if kind == "unloadable" else {}
    cost = SLOW if kind == "slow-put" else None
    diagnosis = diagnose(directory, put_cost=cost, refused=refused, jax="0.12.0.1")
    assert kinds(diagnosis) | {"never-read"} == {kind, "never-read"}
    assert diagnosis.state == state
    assert the(diagnosis, kind).remedy
    moved = doctor.to_quarantine(survey(open_directory(str(directory))), diagnosis)
    assert bool(moved) == (kind in ("empty", "torn", "garbage", "wrong-module", "unloadable"))


@pytest.mark.parametrize("cap", [-1, CAP])
def test_a_cache_that_jax_filled_is_healthy(fill, cap):
    diagnosis = diagnose(fill(cap), put_cost=put_cost.PutCost(3, 3, 0.001, 0.001, "/scratch"))
    assert (diagnosis.state, diagnosis.exit_code, kinds(diagnosis)) == ("healthy", 0, set())


@pytest.mark.parametrize("kind", ["empty", "torn"])
def test_a_young_bad_entry_is_noted_and_left_to_its_writer(fill, kind):
    directory = fill(CAP)
    os.utime(directory / f"{spoil(directory, kind)}-cache")
    # However long reading the rest takes: an entry is as old as when it was read.
    seen = survey(open_directory(str(directory)), now=time.time() + 30)
    diagnosis = doctor.diagnose(seen)
    assert (diagnosis.state, the(diagnosis, kind).settled) == ("healthy", False)
    assert re.search("may still be on its way: look again", the(diagnosis, kind).evidence)
    assert doctor.to_quarantine(seen, diagnosis) == []
    assert doctor.to_quarantine(seen, doctor.diagnose(seen, settle_s=0)) != []


def test_an_orphan_ails_only_a_release_that_it_keeps_from_writing_and_always_stays(fill):
    directory = fill(CAP)
    spoil(directory, "orphaned")
    seen = survey(open_directory(str(directory)))
    for release, severity in (("0.10.2", "ailing"), ("0.11.0", "ailing"), ("0.11.1", "note")):
        diagnosis = doctor.diagnose(seen, jax=release, settle_s=0)
        assert the(diagnosis, "orphaned").severity == severity
        assert doctor.to_quarantine(seen, diagnosis) == []


def test_a_cache_that_is_used_with_and_without_a_cap_stays_warm(tmp_path):
    directory = tmp_path / "cache"
    run_jax(directory)
    assert run_jax(directory, cap=CAP, functions=1)["hits"] == 1  # leaves a lock: the rest look odd
    backdate(directory)
    done = run_harness("doctor", str(directory), "--no-put-cost", "--quarantine", "--load")
    assert "Nothing was moved aside." in done.stdout
    assert run_jax(directory)["hits"] == 3


def test_only_what_jax_wrote_is_an_entry(fill):
    directory = fill()
    for name in ("pip-cache", "build-cache"):
        (directory / name).write_bytes(b"")
    assert kinds(diagnose(directory)) == set()


def test_loading_judges_only_what_is_proven(fill, tmp_path):
    directory = fill()
    an_executable_without_its_end(directory, None)
    unsaid = directory / f"jit_unsaid-{'0' * 64}-cache"
    unsaid.write_bytes(zlib.compress(b"\0\0\0\1" + bytes(range(1, 200))))
    done = run_harness("doctor", str(directory), "--no-put-cost", "--load", "--json")
    told = json.loads(done.stdout)
    found = {
        f["entries"][0]: f["settled"]
        for f in told["diagnosis"]["findings"]
        if f["kind"] == "unloadable"
    }
    assert found == {entry_of(directory, "jit_first").name[:-6]: True, unsaid.name[:-6]: False}
    assert told["loads"]["loaded"] == 2
    done = run_harness("doctor", str(directory), "--jax", "new")
    assert (done.returncode, "expected a release of JAX" in done.stderr) == (2, True)


def test_a_duplicate_names_both_keys_and_other_contents_are_none(fill):
    directory = fill()
    same_executable(directory, None)
    sign = the(diagnose(directory), "duplicate")
    assert [name.partition("-")[0] for name in sign.entries] == ["jit_first"] * 2
    assert "2 keys hold the same executable" in sign.evidence
    path = directory / f"jit_first-{'0' * 64}-cache"
    path.write_bytes(compress_executable(decompress_executable(path.read_bytes()) + b"more"))
    assert kinds(diagnose(directory)) == set()


def test_what_was_never_read_is_noted_once_and_what_was_read_is_not(fill):
    directory = fill(CAP)
    sign = the(diagnose(directory), "never-read")
    assert "3 of 3 entries" in sign.evidence
    assert "JAX's own record" in sign.evidence
    for path in directory.glob("*-atime"):
        path.write_bytes(time.time_ns().to_bytes(8, "little"))
    assert diagnose(directory).findings == ()


def test_entries_of_another_compression_or_format_are_foreign(fill, monkeypatch):
    monkeypatch.setattr(entry, "zstd_library", lambda: None)
    directory = fill()
    (directory / f"jit_a-{'a' * 64}-cache").write_bytes(entry.ZSTD_MAGIC + bytes(50))
    (directory / f"jit_b-{'b' * 64}-cache").write_bytes(zlib.compress(b"\0\0\0\1" + b"nothing"))
    other_format(directory, None)
    signs = [f.evidence for f in diagnose(directory).findings if f.kind == "foreign-version"]
    texts = ("zstd, which this Python .* cannot unpack", "no executable's header", "`pjrt_ifrt 2`")
    assert all(re.search(text, sign) for text, sign in zip(texts, signs, strict=True)), signs


def test_a_time_ahead_of_the_clock_misleads_only_where_jax_recorded_it(fill):
    directory = fill(CAP)
    os.utime(entry_of(directory, "jit_first"), (time.time() + 3600,) * 2)
    diagnosis = diagnose(directory)
    assert (the(diagnosis, "future").severity, diagnosis.state) == ("note", "healthy")
    assert re.search(r"3\d{3} s ahead", the(diagnosis, "future").evidence)
    used_tomorrow(directory, None)
    assert the(diagnose(directory), "future").severity == "ailing"


def test_a_directory_that_everyone_can_write_is_unusable(fill):
    directory = fill()
    directory.chmod(0o1777)  # sticky: nobody can replace an entry, but everyone can plant one
    done = run_harness("doctor", str(directory), "--no-put-cost")
    assert done.returncode == 5
    assert re.search(r"unusable: others-can-write\n.*everyone .* code that JAX runs", done.stdout)


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
    sign = the(diagnose(directory), "others-can-write")
    assert (sign.severity, len(sign.entries)) == ("unusable", 1)


def test_a_group_or_an_owner_who_can_write_is_named(fill, monkeypatch):
    directory = fill()
    directory.chmod(0o775)
    monkeypatch.setattr(directory_ailments, "is_shared", lambda gid, uid: True)
    sign = the(diagnose(directory), "others-can-write")
    assert (sign.severity, "the group" in sign.evidence) == ("ailing", True)
    directory.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(directory, 4321, 4321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
    sign = next(f for f in diagnose(directory).findings if f.kind == "others-can-write")
    assert (sign.severity, "whose it is, can write" in sign.evidence) == ("ailing", True)


def test_who_an_access_control_list_lets_write_is_named(fill):
    directory = fill()
    named = (2, 6, 4321), (2, 5, 4322)  # the other may read and enter
    entries = [(1, 7, NOBODY), *named, (4, 5, NOBODY), (16, 7, NOBODY), (32, 5, NOBODY)]
    data = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries)
    for path in (directory, entry_of(directory, "jit_first")):
        try:
            os.setxattr(path, "system.posix_acl_access", data)
        except (OSError, AttributeError):
            pytest.skip("this file system has no access control lists")
    signs = [f for f in diagnose(directory).findings if f.kind == "others-can-write"]
    assert [sign.evidence[:13] for sign in signs] == ["user 4321 can"] * 2
    assert not any("4322" in sign.evidence for sign in signs)
    assert {sign.severity for sign in signs} == {"ailing"}


def test_a_private_group_is_nobody_else():
    assert not directory_ailments.is_shared(0, 0)
    assert directory_ailments.is_shared(987654, 0)  # without a name: nobody knows who is in it


def test_filelock_and_the_cost_of_a_write_matter_under_a_cap_only(fill, monkeypatch):
    directory = fill()
    without_filelock(directory, monkeypatch)
    assert kinds(diagnose(directory)) == set()
    assert kinds(diagnose(directory, capped=True)) == {"no-filelock"}
    slow = diagnose(directory, put_cost=SLOW)
    assert (slow.state, the(slow, "slow-put").severity) == ("healthy", "note")
    assert "500 ms at 20000 entries, 1.0 ms at none" in the(slow, "slow-put").evidence


def test_a_write_grows_with_the_entries_and_is_measured_elsewhere(tmp_path):
    cost = put_cost.measure(3000, tmp_path)
    assert (cost.entries, cost.measured_entries, cost.where) == (3000, 3000, str(tmp_path))
    assert cost.capped_s > 5 * cost.first_s
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_cannot_be_measured_does_not_hide_the_findings(fill, tmp_path, monkeypatch):
    directory = fill(CAP)
    spoil(directory, "torn")
    done = run_harness("doctor", str(directory), "--scratch", str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "ailing: torn" in done.stdout
    assert re.search("could not be measured: .* --no-put-cost", done.stdout)
    with monkeypatch.context() as impatient:
        impatient.setattr(put_cost, "TIMEOUT_S", 0.0)
        impatient.setattr(child, "POLL_S", 0.0)
        with pytest.raises(HarnessError, match=r"it took more than 0 s\. Give --scratch"):
            put_cost.measure(1, tmp_path)
    (tmp_path / "filelock.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(
        HarnessError, match=r"could not be measured: .*install.*filelock.* --no-put-cost"
    ):
        put_cost.measure(1, tmp_path)


def test_doctor_prints_json(fill):
    directory = fill(CAP)
    name = spoil(directory, "torn")
    done = run_harness("doctor", str(directory), "--json", "--quarantine")
    told = json.loads(done.stdout)
    assert told["moved"]["names"] == [name]
    assert told["diagnosis"]["state"] == "ailing"
    assert told["diagnosis"]["put_cost"]["entries"] == 3
    assert (told["state"], done.returncode) == ("healthy", 0)
