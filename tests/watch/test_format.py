"""Logs and ledgers that an earlier release wrote are read, and written in the same way still."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cache.ledger import read
from harness.profiles.log_reader import read_file
from harness.watch.log_file import is_sealed
from harness.watch.writer import encoded

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        ("profile.jsonl", lambda path: read_file(path).lines),
        ("ledger.jsonl", lambda path: read(path).events),
    ],
)
def test_every_line_of_an_earlier_release_is_read_and_written_alike(file, lines):
    text = (DATA / file).read_bytes()
    found = lines(DATA / file)
    assert len(found) == text.count(b"\n")
    assert [_unsealed(encoded(line)) for line in found] == text.splitlines(keepends=True)


def _unsealed(line):
    """A line as it was before there were checksums."""
    assert is_sealed(line.rstrip())
    return line[: line.rindex(b',"crc32"')] + b"}\n"


def test_lines_whose_fields_stand_in_another_order_are_read():
    log = read_file(DATA / "profile.jsonl")
    assert log.broken_lines == 0
    assert log.lines[8].requests[0].outcome == "hit"
    assert log.lines[8].spans[2].stage == "compile"
    assert log.lines[6].leaves[1].path == "params['w']"
