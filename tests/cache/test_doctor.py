"""Each ailment is planted in a cache that JAX filled, and found alone; a healthy one is quiet."""

from __future__ import annotations

import json
import os
import pwd
import re
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
from harness.watch import jax_names
from tests.cache.filled import CAP, backdate, diagnose, entry_of, kinds, run_jax, spoil, the
from tests.cache.planted import EARLY, MOVED, PLANTS, plant

SLOW = put_cost.PutCost(20_000, 20_000, 0.5, 0.001, "/scratch")


def planted(name, directory):
    (one,) = (one for one in PLANTS if one.name == name)
    return plant(one, directory)


@pytest.mark.parametrize("one", PLANTS, ids=lambda one: one.name)
def test_an_ailment_that_is_planted_is_found_alone(fill, one):
    directory = fill()
    try:
        name = plant(one, directory)
    except (OSError, AttributeError, ValueError) as reason:
        pytest.skip(f"this user, file system or processor cannot: {reason!r}")
    seen = survey(open_directory(str(directory)))
    names = [each.name for each in seen.entries]
    refused = load(directory, names).refused if one.kind == "unloadable" else {}
    diagnosis = doctor.diagnose(seen, refused=refused, jax=jax_names.version())
    every = [finding for finding in diagnosis.findings if finding.kind != "never-read"]
    assert [(found.kind, found.severity) for found in every] == [
        (one.kind, one.severity)
    ] * one.entries
    assert diagnosis.state == ("healthy" if one.severity == "note" else one.severity)
    assert re.search(one.evidence, every[0].evidence)
    assert every[0].remedy
    assert all(one.whole or name in found.entries for found in every[:1])
    moved = doctor.to_quarantine(seen, diagnosis)
    assert len(moved) == one.entries * (one.kind in MOVED and one.severity != "note")


def test_every_ailment_is_planted():
    noted = "unchecked", "duplicate", "never-read", "foreign-version", "slow-put"
    uses = "no-entries", "file-address", "rights", "over-cap"  # tests/cache/test_use.py
    assert AILMENTS.keys() - {one.kind for one in PLANTS} == {*noted, *uses}


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
    assert (diagnosis.state, diagnosis.exit_code) == ("unsettled", 0)
    assert (the(diagnosis, kind).severity, the(diagnosis, kind).settled) == ("unsettled", False)
    assert "`--settle 0`" in the(diagnosis, kind).remedy
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
    young = doctor.diagnose(seen, jax="0.10.2", settle_s=86400)
    assert (young.state, the(young, "orphaned").settled) == ("unsettled", False)


def test_a_cache_that_is_used_with_and_without_a_cap_stays_warm(tmp_path, says):
    directory = tmp_path / "cache"
    run_jax(directory)
    assert run_jax(directory, cap=CAP, functions=1)["hits"] == 1  # leaves a lock: the rest look odd
    backdate(directory)
    words = "--no-put-cost", "--quarantine", "--load"
    says("doctor", directory, *words, code=int(EARLY), said="Nothing was moved aside.")
    assert run_jax(directory)["hits"] == 3


def test_only_what_jax_wrote_is_an_entry(fill):
    directory = fill()
    for name in ("pip-cache", "build-cache"):
        (directory / name).write_bytes(b"")
    assert kinds(diagnose(directory)) == set()


def test_loading_judges_only_what_is_proven(fill, says):
    directory = fill()
    torn = planted("an executable's tail lost", directory)
    unsaid = f"jit_unsaid-{'0' * 64}"
    data = zlib.compress(b"\0\0\0\1" + bytes(range(1, 200)))
    (directory / f"{unsaid}-cache").write_bytes(data)
    told = json.loads(says("doctor", directory, "--no-put-cost", "--load", "--format=json", code=1))
    findings = told["diagnosis"]["findings"]
    found = {f["entries"][0]: f["settled"] for f in findings if f["kind"] == "unloadable"}
    assert found == {torn: True, unsaid: False}
    assert told["loads"]["loaded"] == 2
    says("doctor", directory, "--jax", "new", code=2, said="expected a release of JAX")


def test_loading_finds_what_is_on_the_path_of_the_command(fill, says, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'seen')!r}, 'w')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    says("doctor", fill(), "--no-put-cost", "--load", said="", code=0)
    assert (tmp_path / "seen").exists()


def test_a_duplicate_names_both_keys_and_other_contents_are_none(fill):
    directory = fill()
    path = entry_of(directory, "jit_first")
    whole = decompress_executable(path.read_bytes())
    other = path.with_name(f"jit_first-{'0' * 64}-cache")
    # With another compile time: the executable counts.
    other.write_bytes(compress_executable(b"\0\0\0\x09" + whole[4:]))
    diagnosis = diagnose(directory)
    sign = the(diagnosis, "duplicate")
    assert [name.partition("-")[0] for name in sign.entries] == ["jit_first"] * 2
    assert "2 keys hold the same executable" in sign.evidence
    assert (diagnosis.state, kinds(diagnosis)) == ("healthy", {"duplicate"})
    other.write_bytes(compress_executable(whole + b"more"))
    assert kinds(diagnose(directory)) == set()


def test_what_was_never_read_is_noted_once_and_what_was_read_is_not(fill):
    directory = fill(CAP)
    sign = the(diagnose(directory), "never-read")
    assert "3 of 3 entries" in sign.evidence
    assert "JAX's own record" in sign.evidence
    for path in directory.glob("*-atime"):
        path.write_bytes(time.time_ns().to_bytes(8, "little"))
    assert diagnose(directory).findings == ()


def test_entries_of_another_compression_or_format_and_too_large_ones_are_noted(fill, monkeypatch):
    monkeypatch.setattr(entry, "zstd_library", lambda: None)
    monkeypatch.setattr(entry, "MOST_BYTES", 1 << 20)
    directory = fill()
    for module, data in (
        ("a", entry.ZSTD_MAGIC + bytes(50)),
        ("b", zlib.compress(b"\0\0\0\1" + b"nothing")),
        ("c", zlib.compress(b"\0\0\0\1\x0d\x08\x02\x12\x09pjrt_ifrt rest")),
        ("d", zlib.compress(bytes(5 << 20))),
    ):
        path = directory / f"jit_{module}-{module * 64}-cache"
        path.write_bytes(data)
    diagnosis = diagnose(directory)
    signs = [f.evidence for f in diagnosis.findings if f.kind == "foreign-version"]
    texts = ("zstd, which this Python .* cannot unpack", "no executable's header", "`pjrt_ifrt 2`")
    assert all(re.search(text, sign) for text, sign in zip(texts, signs, strict=True)), signs
    assert the(diagnosis, "unchecked").entries == (path.name.removesuffix("-cache"),)
    assert (diagnosis.state, kinds(diagnosis)) == ("healthy", {"foreign-version", "unchecked"})
    assert doctor.to_quarantine(survey(open_directory(str(directory))), diagnosis) == []


def test_a_time_ahead_of_the_clock_misleads_only_where_jax_recorded_it(fill):
    directory = fill(CAP)
    os.utime(entry_of(directory, "jit_first"), (time.time() + 3600,) * 2)
    diagnosis = diagnose(directory)
    assert (the(diagnosis, "future").severity, diagnosis.state) == ("note", "healthy")
    assert re.search(r"3\d{3} s ahead", the(diagnosis, "future").evidence)


def test_a_directory_that_everyone_can_write_is_unusable_and_a_sticky_parent_harmless(fill, says):
    directory = fill()
    directory.chmod(0o1777)  # sticky: nobody can replace an entry, but everyone can plant one
    said = says("doctor", directory, "--no-put-cost", code=5)
    assert re.search(r"unusable: others-can-write\n.*everyone .* code that JAX runs", said)
    directory.chmod(0o755)
    directory.parent.chmod(0o1777)
    assert kinds(diagnose(directory)) == set()


def test_a_group_or_an_owner_who_can_write_is_named(fill, monkeypatch):
    directory = fill()
    directory.chmod(0o775)
    assert directory_ailments.is_shared(987654, 0)  # without a name: nobody knows who is in it
    assert not directory_ailments.is_shared(0, 0)
    daemon = pwd.getpwnam("daemon")  # a group of this name has no other members
    assert not directory_ailments.is_shared(daemon.pw_gid, daemon.pw_uid)
    assert directory_ailments.is_shared(daemon.pw_gid, 0)
    monkeypatch.setattr(directory_ailments, "is_shared", lambda gid, uid: True)
    sign = the(diagnose(directory), "others-can-write")
    assert (sign.severity, "the group" in sign.evidence) == ("ailing", True)


def test_the_cost_of_a_write_matters_under_a_cap_only(fill):
    directory = fill()
    assert kinds(diagnose(directory, put_cost=SLOW)) == set()
    slow = diagnose(directory, put_cost=SLOW, max_size_bytes=CAP)
    assert "500 ms at 20000 entries, 1.0 ms at none" in the(slow, "slow-put").evidence
    assert (slow.state, the(slow, "slow-put").severity) == ("ailing", "ailing")


def test_what_a_write_costs_among_so_many_entries_is_measured_elsewhere(tmp_path):
    cost = put_cost.measure(3000, tmp_path)
    assert (cost.entries, cost.measured_entries, cost.where) == (3000, 3000, str(tmp_path))
    assert min(cost.capped_s, cost.first_s) > 0
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_cannot_be_measured_does_not_hide_the_findings(
    fill, tmp_path, monkeypatch, says
):
    directory = fill(CAP)
    spoil(directory, "torn")
    said = says("doctor", directory, "--scratch", tmp_path / "nowhere", code=1, said="ailing: torn")
    assert re.search("could not be measured: .* --no-put-cost", said)
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


def test_doctor_prints_json(fill, says):
    directory = fill(CAP)
    name = spoil(directory, "torn")
    told = json.loads(says("doctor", directory, "--format=json", "--quarantine"))
    assert told["moved"]["names"] == [name]
    assert told["diagnosis"]["state"] == "ailing"
    assert told["diagnosis"]["put_cost"]["entries"] == 3
    assert told["state"] == "healthy"
