"""Each problem is planted in a cache that JAX filled, and found alone; a healthy one is quiet."""

from __future__ import annotations

import json
import os
import pwd
import re
import time
import zlib

import pytest
from jax._src.compilation_cache import compress_executable, decompress_executable

from harness.cache import directory_checks, doctor, entry, put_cost, repair
from harness.cache.directory import open_directory
from harness.cache.doctor import CHECKS
from harness.cache.loads import load
from harness.cache.survey import survey
from harness.errors import HarnessError
from harness.jaxhooks import jax_names
from harness.measure import child
from harness.output import cache_doctor as words
from tests.cache.filled import CAP, backdate, checks, diagnose, entry_of, run_jax, spoil, the
from tests.cache.planted import EARLY, MOVED, PLANTS, plant

SLOW = put_cost.PutCost(20_000, 20_000, 0.5, 0.001, "/scratch")


def planted(name, directory):
    (one,) = (one for one in PLANTS if one.name == name)
    return plant(one, directory)


def moved(directory, diagnosis):
    return repair.repair(
        directory, survey(open_directory(str(directory))).entries, diagnosis.findings
    ).moved


@pytest.mark.parametrize("one", PLANTS, ids=lambda one: one.name)
def test_a_problem_that_is_planted_is_found_alone(fill, one):
    directory = fill()
    try:
        name = plant(one, directory)
    except (OSError, AttributeError, ValueError) as reason:
        pytest.skip(f"this user, file system or processor cannot: {reason!r}")
    seen = survey(open_directory(str(directory)))
    names = [each.name for each in seen.entries]
    refused = load(directory, names).refused if one.check == "unloadable" else {}
    diagnosis = doctor.diagnose(seen, refused=dict(refused), release=jax_names.version())
    every = [f for f in diagnosis.findings if f.check not in ("never-read", "moved")]
    assert [(finding.check, finding.severity) for finding in every] == [(one.check, one.severity)]
    assert diagnosis.state == ("healthy" if one.severity == "note" else one.severity)
    facts = {**every[0].facts, **(every[0].facts.get("faults") or [{}])[0]}
    assert {key: facts[key] for key in one.facts} == one.facts
    assert len(every[0].entries) == (0 if one.whole else one.entries)
    assert one.whole or name in every[0].entries
    assert (every[0].fix.kind == "repair") == (
        (one.check in MOVED and one.severity != "note") or (one.check == "orphaned" and EARLY)
    )
    assert len(moved(directory, diagnosis)) == one.entries * (
        one.check in MOVED and one.severity != "note"
    )


def test_every_check_is_planted_and_has_words():
    every = {name for names in CHECKS for name in names.split(", ")}
    noted = {"unchecked", "never-read", "needs-zstd", "unknown-format", "slow-put"}
    # tests/cache/test_whole.py, test_verify.py, test_use.py
    whole = {"duplicate", "other-options", "moved", "other-release", "other-device"}
    uses = {"no-entries", "file-address", "rights", "over-cap", "no-room", "not-as-rebuilt"}
    assert every - {one.check for one in PLANTS} == noted | whole | uses
    assert every == words.TITLES.keys()


@pytest.mark.parametrize("cap", [-1, CAP])
def test_a_cache_that_jax_filled_is_healthy(fill, cap):
    diagnosis = diagnose(fill(cap), put_cost=put_cost.PutCost(3, 3, 0.001, 0.001, "/scratch"))
    assert (diagnosis.state, diagnosis.exit_code, checks(diagnosis)) == ("healthy", 0, set())


@pytest.mark.parametrize("kind", ["empty", "torn"])
def test_a_young_bad_entry_is_noted_and_left_to_its_writer(fill, kind):
    directory = fill(CAP)
    os.utime(directory / f"{spoil(directory, kind)}-cache")
    # However long reading the rest takes: an entry is as old as when it was read.
    seen = survey(open_directory(str(directory)), now=time.time() + 30)
    diagnosis = doctor.diagnose(seen)
    assert (diagnosis.state, diagnosis.exit_code) == ("unsettled", 0)
    finding = the(diagnosis, kind)
    assert (finding.severity, finding.fix.kind) == ("unsettled", "look-again")
    assert finding.fix.command.endswith("--repair --settle 0")
    assert moved(directory, diagnosis) == []
    assert moved(directory, doctor.diagnose(seen, settle_s=0)) != []


def test_an_orphan_is_a_problem_where_it_keeps_a_release_from_writing_and_always_stays(fill):
    directory = fill(CAP)
    spoil(directory, "orphaned")
    seen = survey(open_directory(str(directory)))
    for release, severity in (("0.10.2", "problem"), ("0.11.0", "problem"), ("0.11.1", "note")):
        diagnosis = doctor.diagnose(seen, release=release, settle_s=0)
        assert the(diagnosis, "orphaned").severity == severity
        assert ("missing-times" in diagnosis.here.blocked) == (severity == "problem")
    young = doctor.diagnose(seen, release="0.10.2", settle_s=86400)
    assert (young.state, the(young, "orphaned").fix.kind) == ("unsettled", "look-again")


def test_a_cache_that_is_used_with_and_without_a_cap_stays_warm(tmp_path, says):
    directory = tmp_path / "cache"
    run_jax(directory)
    assert run_jax(directory, cap=CAP, functions=1)["hits"] == 1  # leaves a lock: the rest look odd
    backdate(directory)
    options = "--no-put-cost", "--repair", "--load", "--format=json"
    repaired = json.loads(says("doctor", directory, *options))["repaired"]
    assert (repaired["moved"], len(repaired["timed"])) == ([], 2 * EARLY)
    assert run_jax(directory)["hits"] == 3


def test_only_what_jax_wrote_is_an_entry(fill):
    directory = fill()
    for name in ("pip-cache", "build-cache"):
        (directory / name).write_bytes(b"")
    assert checks(diagnose(directory)) == set()


def test_loading_judges_only_what_is_proven(fill, says):
    directory = fill()
    torn = planted("an executable's tail lost", directory)
    silent = f"jit_silent-{'0' * 64}"
    data = zlib.compress(b"\0\0\0\1" + bytes(range(1, 200)))
    (directory / f"{silent}-cache").write_bytes(data)
    options = "--no-put-cost", "--load", "--format=json"
    seen = json.loads(says("doctor", directory, *options, code=1))
    unloadable = [f for f in seen["findings"] if f["check"] == "unloadable"]
    assert {f["entries"][0]: f["severity"] for f in unloadable} == {torn: "problem", silent: "note"}
    assert seen["loads"]["loaded"] == 2
    says("doctor", directory, "--jax", "new", code=2, said="expected a release of JAX")


def test_loading_finds_what_is_on_the_path_of_the_command(fill, says, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'seen')!r}, 'w')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    says("doctor", fill(), "--no-put-cost", "--load", said="", code=0)
    assert (tmp_path / "seen").exists()


def test_a_duplicate_names_its_program_and_other_contents_are_none(fill):
    directory = fill()
    path = entry_of(directory, "jit_first")
    whole = decompress_executable(path.read_bytes())
    other = path.with_name(f"jit_first-{'0' * 64}-cache")
    # With another compile time: the executable counts.
    other.write_bytes(compress_executable(b"\0\0\0\x09" + whole[4:]))
    diagnosis = diagnose(directory)
    finding = the(diagnosis, "duplicate")
    assert (finding.facts["modules"], finding.severity) == (["jit_first"], "note")
    assert finding.entries == (path.name.removesuffix("-cache"),)  # the newer one stays
    assert finding.facts["newest"] == [other.name.removesuffix("-cache")]
    assert (diagnosis.state, checks(diagnosis)) == ("healthy", {"duplicate"})


def test_what_was_never_read_is_noted_once_and_what_was_read_is_not(fill):
    directory = fill(CAP)
    finding = the(diagnose(directory), "never-read")
    assert (len(finding.entries), finding.facts["of"]) == (3, 3)
    assert finding.facts["by"] == ["atime-file"]
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
    formats = [f.facts["format"] for f in diagnosis.findings if f.check == "unknown-format"]
    assert formats == ["", "pjrt_ifrt 2"]
    assert len(the(diagnosis, "needs-zstd").entries) == 1
    assert the(diagnosis, "unchecked").entries == (path.name.removesuffix("-cache"),)
    noted = {"needs-zstd", "unknown-format", "unchecked", "other-device"}
    assert (diagnosis.state, checks(diagnosis)) == ("healthy", noted)
    assert moved(directory, diagnosis) == []


def test_a_time_ahead_of_the_clock_misleads_only_where_jax_recorded_it(fill):
    directory = fill(CAP)
    os.utime(entry_of(directory, "jit_first"), (time.time() + 3600,) * 2)
    diagnosis = diagnose(directory)
    assert (the(diagnosis, "future").severity, diagnosis.state) == ("note", "healthy")
    assert 3000 < the(diagnosis, "future").facts["ahead_s"][0] <= 3600


def test_a_directory_that_everyone_can_write_is_unusable_and_a_sticky_parent_harmless(fill, says):
    directory = fill()
    directory.chmod(0o1777)  # sticky: nobody can replace an entry, but everyone can plant one
    seen = json.loads(says("doctor", directory, "--no-put-cost", "--format=json", code=5))
    (finding,) = (f for f in seen["findings"] if f["check"] == "others-can-write")
    assert (finding["facts"]["who"], finding["severity"]) == ("everyone", "unusable")
    assert finding["fix"]["command"] == f"chmod o-w {directory}"
    directory.chmod(0o755)
    directory.parent.chmod(0o1777)
    assert checks(diagnose(directory)) == set()


def test_a_group_or_an_owner_who_can_write_is_named(fill, monkeypatch):
    directory = fill()
    directory.chmod(0o775)
    assert directory_checks.is_shared(987654, 0)  # without a name: nobody knows who is in it
    assert not directory_checks.is_shared(0, 0)
    daemon = pwd.getpwnam("daemon")  # a group of this name has no other members
    assert not directory_checks.is_shared(daemon.pw_gid, daemon.pw_uid)
    assert directory_checks.is_shared(daemon.pw_gid, 0)
    monkeypatch.setattr(directory_checks, "is_shared", lambda gid, uid: True)
    finding = the(diagnose(directory), "others-can-write")
    assert (finding.severity, finding.facts["who"]) == ("problem", "group")


def test_the_cost_of_a_write_matters_under_a_cap_only(fill):
    directory = fill()
    assert checks(diagnose(directory, put_cost=SLOW)) == set()
    finding = the(diagnose(directory, CAP, put_cost=SLOW), "slow-put")
    assert finding.facts == {"capped_s": 0.5, "first_s": 0.001, "of": 20_000}
    assert finding.severity == "problem"


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
    text = says("doctor", directory, "--scratch", tmp_path / "nowhere", code=1, said="cut short")
    assert re.search("could not be measured: .* --no-put-cost", text)
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


def test_doctor_prints_its_records_as_json(fill, says):
    directory = fill(CAP)
    name = spoil(directory, "torn")
    seen = json.loads(says("doctor", directory, "--format=json", "--repair"))
    assert (seen["schema"], seen["repaired"]["moved"], seen["state"]) == (2, [name], "healthy")
    (finding,) = (f for f in seen["findings"] if f["check"] == "torn")
    assert finding.keys() == {"check", "entries", "severity", "consequence", "fix", "facts"}
    assert finding["fix"]["command"] == f"harness cache doctor {directory} --repair"
    assert seen["put_cost"]["entries"] == 3
    assert (seen["here"]["capped"], seen["here"]["blocked"]) == (True, [])
