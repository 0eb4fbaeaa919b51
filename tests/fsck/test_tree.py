"""`harness fsck` says what is damaged, foreign or left over, and repairs what can be."""

import json
import os
import shutil
import time

import pytest

from harness import fsck
from harness.errors import UsageError
from harness.records.store import Store
from tests.damaged import formats
from tests.frame.trees import record


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A healthy tree of every kind of file, and a folder of its own for temporary ones."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    own = tmp_path / "results"
    for one in formats.FORMATS:
        if one.name in ("records", "night", "kept program", "asv result", "live state"):
            one.make(tmp_path / one.name)
            shutil.copytree(tmp_path / one.name, own, dirs_exist_ok=True)
    return own


def found(report):
    return sorted((one.state, one.path.rpartition("/")[2], one.repaired) for one in report.findings)


def test_nothing_is_found_in_a_healthy_tree(tree):
    report = fsck.check(tree)
    assert found(report) == []
    assert report.files >= 9


def test_damage_is_found_in_every_kind_of_file_and_what_is_derived_is_put_aside(tree):
    derived = [
        "box/aa/run.json5",
        "box/nights/2026-11-20.json5",
        f"box/programs/{'ab' * 8}.json.gz",
    ]
    others = ["box/records/01234567-a.jsonl"]
    for name in (*derived, *others):
        content = bytearray((tree / name).read_bytes())
        content[len(content) // 2] ^= 1
        (tree / name).write_bytes(content)
    names = [name.rpartition("/")[2] for name in (*derived, *others)]
    assert found(fsck.check(tree)) == sorted(("damaged", name, False) for name in names)
    repaired = fsck.check(tree, repair=True)
    expected = [("damaged", name, name != "01234567-a.jsonl") for name in names]
    assert found(repaired) == sorted(expected)
    assert [one.what for one in repaired.open] == [
        "left out: 1 corrupt line(s) (checksum or JSON wrong)"
    ]
    assert found(fsck.check(tree)) == [("damaged", "01234567-a.jsonl", False)]
    assert (tree / "box/aa/run.json5.damaged").exists()


def test_foreign_files_and_records_of_another_machine_are_found(tree):
    (tree / "box" / "notes.txt").write_text("mine")
    Store(tree / "other" / "records" / "a.jsonl").append([record()])
    report = fsck.check(tree, repair=True)
    assert found(report) == [("damaged", "a.jsonl", False), ("foreign", "notes.txt", False)]
    assert report.findings[0].what == "records of box in the folder of other"


def test_what_killed_processes_left_is_removed(tree, tmp_path):
    old = time.time() - 2 * fsck.LEFT_S
    for name, at in (("old", old), ("young", time.time())):
        part = tree / "box" / f".{name}.json5.1-abcd.part"
        part.write_text("")
        os.utime(part, (at, at))
    (tmp_path / "scratch" / "harness-scratch-abc" / "tree").mkdir(parents=True)
    names = {".old.json5.1-abcd.part", "harness-scratch-abc"}
    assert found(fsck.check(tree)) == sorted(("left over", name, False) for name in names)
    assert found(fsck.check(tree, repair=True)) == sorted(("left over", n, True) for n in names)
    assert found(fsck.check(tree)) == []


def test_the_command_prints_it_and_ends_with_1_as_long_as_something_is_to_be_done(tree, command):
    (tree / "box" / "x\x1b[31m\udcff.txt").write_text("")
    code, out, _ = command("fsck", tree)
    assert code == 1
    assert "foreign" in out
    assert "\x1b" not in out
    code, out, _ = command("fsck", "-r", tree, "--format", "json")
    document = json.loads(out)
    assert (code, len(document["findings"])) == (1, 1)
    assert document["findings"][0]["state"] == "foreign"


def test_what_is_no_tree_is_refused(tmp_path, tree):
    for folder in (tmp_path / "nowhere", tree / "box"):
        with pytest.raises(UsageError, match="is no results tree"):
            fsck.check(folder)
