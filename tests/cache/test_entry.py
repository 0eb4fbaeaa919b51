"""One entry: what is inside, and what is wrong with it."""

from __future__ import annotations

import io
import os
import re
import tracemalloc
import zlib

import pytest

from harness.cache import entry
from harness.cache.entry import read_contents

HEADER = b"\x0d\x08\x03\x12\x09pjrt_ifrt"


def packed(executable=HEADER + b"machine code", seconds=7):
    return zlib.compress(seconds.to_bytes(4, "big") + executable)


def read(data):
    return read_contents(io.BytesIO(data))


def zstd_frame(data):
    """A frame with its contents as they are; the format allows that, and no library is needed."""
    block = (len(data) << 3 | 1).to_bytes(3, "little")
    return entry.ZSTD_MAGIC + b"\x60" + (len(data) - 256).to_bytes(2, "little") + block + data


def test_the_compile_time_format_and_size_are_those_that_were_stored():
    contents = read(packed(seconds=7))
    assert (contents.state, contents.reason, contents.compression) == ("readable", "", "zlib")
    assert (contents.compile_whole_s, contents.format) == (7, "pjrt_ifrt 3")
    assert contents.unpacked_bytes == len(zlib.decompress(packed()))


def test_the_digest_is_of_the_executable_alone():
    assert read(packed(seconds=7)).digest == read(packed(seconds=8)).digest
    assert read(packed()).digest != read(packed(HEADER + b"other code")).digest


@pytest.mark.parametrize(
    ("data", "state", "reason"),
    [
        (b"", "empty", "no bytes"),
        (packed()[:1], "torn", "stops in the middle"),
        (packed()[: len(packed()) // 2], "torn", "stops in the middle"),
        (packed()[:-1], "torn", "stops in the middle"),
        (b"garbage" * 9, "garbage", "begins with 67 61 72 62: neither"),
        (packed()[:-1] + bytes([packed()[-1] ^ 1]), "garbage", "incorrect data check"),
        (zlib.compress(b"\0\0\0\1"), "garbage", "unpacks to 4 bytes"),
        (packed(HEADER + b"\x0a\x09cod"), "torn", "executable in it stops 6 bytes early"),
        (entry.ZSTD_MAGIC[:2], "torn", "zstd stream stops"),
    ],
)
def test_what_is_wrong_with_an_entry_is_told(data, state, reason):
    contents = read(data)
    assert contents.state == state
    assert re.search(reason, contents.reason), contents.reason


def test_zstd_without_its_library_is_a_state_of_its_own(monkeypatch):
    monkeypatch.setattr(entry, "zstd_library", lambda: None)
    contents = read(zstd_frame(bytes(4) + HEADER + bytes(400)))
    assert (contents.state, contents.compression) == ("needs-zstd", "zstd")


def test_zstd_is_read_where_there_is_a_library():
    if entry.zstd_library() is None:
        pytest.skip("this Python has no zstd")
    frame = zstd_frame(b"\0\0\0\5" + HEADER + bytes(400))
    contents = read(frame)
    assert contents.state == "readable"
    assert (contents.compile_whole_s, contents.format) == (5, "pjrt_ifrt 3")
    assert read(frame[:-5]).state == "torn"
    assert read(frame[:4] + b"\xff" * 20).state == "garbage"


def test_an_entry_of_100_MB_is_read_in_little_memory(tmp_path):
    path = tmp_path / "big"
    path.write_bytes(zlib.compress(bytes(4) + HEADER + os.urandom(1 << 20) * 100, 0))
    tracemalloc.start()
    with path.open("rb") as file:
        contents = read_contents(file)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert contents.state == "readable"
    assert contents.unpacked_bytes == 4 + len(HEADER) + (100 << 20)
    assert peak_bytes < 8e6


def test_an_entry_that_unpacks_to_too_much_is_left_alone(monkeypatch):
    monkeypatch.setattr(entry, "MOST_BYTES", 1 << 20)
    contents = read(packed(bytes(50 << 20)))
    assert contents.state == "unchecked"
    assert contents.unpacked_bytes < 4 << 20
