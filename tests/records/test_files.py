"""A file is there whole, or as it was."""

import errno
import os
import stat

import pytest

from harness.errors import StoreError
from harness.records import json_file
from harness.records.files import replaced
from harness.records.store import Store
from tests.frame.trees import record


@pytest.mark.parametrize("number", [2**62, -(2**62), 10**40])
def test_numbers_of_which_differences_do_not_fit_are_refused(number):
    json_file.check_numbers(b'{"a": 4611686018427387903, "b": "1234567890123456789"}')
    with pytest.raises(ValueError, match="too large"):
        json_file.check_numbers(b'{"a": %d}' % number)


def test_a_file_of_more_than_64_mib_is_not_read(tmp_path):
    file = tmp_path / "large.json"
    with file.open("wb") as handle:
        handle.truncate(2**26 + 1)
    with pytest.raises(json_file.DamagedError, match="larger than 64 MiB"):
        json_file.data(file)


@pytest.mark.parametrize(("mode", "content"), [("w", "größer\n"), ("wb", b"\x00\xff")])
def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path, monkeypatch, mode, content):
    synced, sync = [], os.fsync

    def noted(number):
        synced.append(stat.S_ISDIR(os.fstat(number).st_mode))
        sync(number)

    monkeypatch.setattr(os, "fsync", noted)
    file = tmp_path / "new folder" / "file"
    with replaced(file, mode) as handle:
        handle.write(content)
    written = file.read_bytes()
    assert written == (content if mode == "wb" else content.encode())
    assert synced == [False, True], "it is on the disk, and then its name is"
    with pytest.raises(KeyboardInterrupt), replaced(file, mode) as handle:  # noqa: PT012
        handle.write(content[:1])
        raise KeyboardInterrupt
    assert file.read_bytes() == written
    assert list(file.parent.iterdir()) == [file]


def test_what_is_written_into_a_results_tree_follows_no_link_out_of_it(tmp_path):
    """A tree may come from elsewhere, and with it a link to anything."""
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    for name in ("night.json5", "records.jsonl"):
        (tmp_path / name).symlink_to(outside)
    json_file.write(tmp_path / "night.json5", {"schema": 2})
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "records.jsonl").append([record()])
    assert outside.read_text() == "mine\n"
    assert not (tmp_path / "night.json5").is_symlink()


def test_a_link_that_a_user_names_is_written_through(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "file.csv")
    with replaced(tmp_path / "link.csv") as handle:
        handle.write("rows\n")
    assert (tmp_path / "file.csv").read_text() == "rows\n"
    assert (tmp_path / "link.csv").is_symlink()


def test_what_was_appended_since_is_read_alone(tmp_path):
    store = Store(tmp_path / "records.jsonl")
    _, end = store.append([record(0)])
    store.append([record(1)])
    new, there = store.read_from(end)
    assert [one.replicate for one in new] == [record(1).replicate]
    assert there == store.size()
    assert store.read_from(there) == ([], there)


@pytest.mark.parametrize("fails", ["pread", "write", "fsync"])
def test_records_that_a_failing_disk_does_not_take_leave_the_file_as_it_was(
    tmp_path, monkeypatch, fails
):
    def failing(*arguments):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = Store(tmp_path / "records.jsonl")
    store.append([record(1)])
    written = store.path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, fails, failing)
        with pytest.raises(StoreError, match=r"could not take the new records: .*Input/output"):
            store.append([record(2)])
    assert store.path.read_bytes() == written
