"""One entry: what is inside, and what is wrong with it."""

from __future__ import annotations

import io
import tracemalloc
import zlib

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
    assert (contents.state, contents.fault, contents.compression) == ("readable", "", "zlib")
    assert (contents.compile_whole_s, contents.executable.format) == (7, "pjrt_ifrt 3")
    assert contents.unpacked_bytes == len(zlib.decompress(packed()))
    other = read(packed(seconds=8))
    assert contents.executable == other.executable  # the time is no part of it


def test_an_executable_that_is_not_whole_tells_how_much_of_it_is_missing():
    contents = read(packed(HEADER + b"\x0a\x09cod"))
    assert (contents.state, contents.fault, contents.detail) == ("torn", "executable-stops", "6")


def test_zstd_is_read_where_there_is_a_library_and_else_a_state_of_its_own(monkeypatch):
    frame = zstd_frame(b"\0\0\0\5" + HEADER + bytes(400))
    assert read(frame[:2]).state == "torn"
    if entry.zstd_library() is not None:
        contents = read(frame)
        assert contents.state == "readable"
        assert (contents.compile_whole_s, contents.executable.format) == (5, "pjrt_ifrt 3")
        assert read(frame[:-5]).state == "torn"
        assert read(frame[:4] + b"\xff" * 20).state == "garbage"
    monkeypatch.setattr(entry, "zstd_library", lambda: None)
    contents = read(frame)
    assert (contents.state, contents.compression) == ("needs-zstd", "zstd")


def test_an_entry_of_100_MB_is_read_in_little_memory(tmp_path):
    path = tmp_path / "big"
    path.write_bytes(zlib.compress(bytes(4) + HEADER + bytes(1 << 20) * 100, 0))
    tracemalloc.start()
    with path.open("rb") as file:
        contents = read_contents(file)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert contents.state == "readable"
    assert contents.unpacked_bytes == 4 + len(HEADER) + (100 << 20)
    assert peak_bytes < 32e6


def test_an_entry_that_unpacks_to_too_much_is_left_alone(monkeypatch):
    monkeypatch.setattr(entry, "MOST_BYTES", 1 << 20)
    contents = read(packed(bytes(50 << 20)))
    assert (contents.state, contents.fault) == ("unchecked", "too-large")
