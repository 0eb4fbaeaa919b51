"""`harness fsck` says what is damaged, foreign or left over, and repairs what can be."""

import json
import os
import random
import shutil
import time

import pytest

from harness import fsck
from harness.errors import UsageError
from harness.records.files import LEFT_S
from harness.records.store import Store
from tests.damaged import formats, ways
from tests.frame.trees import record


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """A tree of every kind of file."""
    folder = tmp_path_factory.mktemp("healthy")
    for one in formats.FORMATS:
        if one.name in ("records", "night", "kept program", "asv result", "live state"):
            one.make(folder / one.name)
            shutil.copytree(folder / one.name, folder / "results", dirs_exist_ok=True)
    return folder / "results"


@pytest.fixture
def tree(healthy, tmp_path, monkeypatch):
    """A copy of it, and a folder of its own for temporary ones."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    return shutil.copytree(healthy, tmp_path / "results")


def found(report):
    return sorted((one.state, one.path.rpartition("/")[2], one.repaired) for one in report.findings)


def test_nothing_is_found_in_a_healthy_tree(tree):
    report = fsck.check(tree)
    assert found(report) == []
    assert report.files >= 9


def test_damage_is_found_in_every_kind_of_file_and_what_is_derived_is_put_aside(tree):
    records = "01234567-a.jsonl"
    derived = ("aa/run.json5", "nights/2026-11-20.json5", f"programs/{'ab' * 8}.json.gz")
    paths = [tree / "box" / name for name in (*derived, f"records/{records}")]
    for path in paths:
        path.write_bytes(ways.flipped(path.read_bytes(), random.Random(1)))
    assert found(fsck.check(tree)) == sorted(("damaged", path.name, False) for path in paths)
    repaired = fsck.check(tree, repair=True)
    expected = [("damaged", path.name, path.name != records) for path in paths]
    assert found(repaired) == sorted(expected)
    said = "left out: 1 corrupt line(s) (checksum or JSON wrong)"
    assert [one.what for one in repaired.open] == [said]
    assert found(fsck.check(tree)) == [("damaged", records, False)]
    assert (tree / "box/aa/run.json5.damaged").exists()


def test_foreign_files_and_records_of_another_machine_are_found(tree):
    (tree / "box" / "notes.txt").write_text("mine")
    Store(tree / "other" / "records" / "a.jsonl").append([record()])
    report = fsck.check(tree, repair=True)
    assert found(report) == [("damaged", "a.jsonl", False), ("foreign", "notes.txt", False)]
    assert report.findings[0].what == "records of box in the folder of other"


def test_what_killed_processes_left_is_removed(tree, tmp_path):
    for name, age_s in (("old", 2 * LEFT_S), ("young", 0)):
        part = tree / "box" / f".{name}.json5.1-abcd.part"
        part.write_text("")
        os.utime(part, (time.time() - age_s,) * 2)
    (tmp_path / "scratch" / "harness-scratch-abc" / "tree").mkdir(parents=True)
    names = (".old.json5.1-abcd.part", "harness-scratch-abc")
    for repair in (False, True):
        said = [("left over", name, repair) for name in names]
        assert found(fsck.check(tree, repair)) == said
    assert found(fsck.check(tree)) == []


def test_the_command_prints_it_and_ends_with_1_as_long_as_something_is_to_be_done(tree, command):
    (tree / "box" / "x\x1b[31m\udcff.txt").write_text("")
    code, out, _ = command("fsck", tree)
    assert (code, "foreign" in out, "\x1b" in out) == (1, True, False)
    code, out, _ = command("fsck", "-r", tree, "--format", "json")
    (one,) = json.loads(out)["findings"]
    assert (code, one["state"]) == (1, "foreign")


def test_what_is_no_tree_is_refused(tmp_path, tree):
    for folder in (tmp_path / "nowhere", tree / "box"):
        with pytest.raises(UsageError, match="is no results tree"):
            fsck.check(folder)
