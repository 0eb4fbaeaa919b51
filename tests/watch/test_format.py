"""Logs and ledgers that an earlier release wrote are read, and written in the same words still."""

from __future__ import annotations

import json
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
def test_every_line_of_an_earlier_release_is_read_and_written_alike(file, lines, tmp_path):
    earlier = [json.loads(line) for line in (DATA / file).read_bytes().splitlines()]
    found = lines(DATA / file)
    written = [encoded(line) for line in found]
    (tmp_path / file).write_bytes(b"".join(written))
    assert lines(tmp_path / file) == found
    for before, line in zip(earlier, written, strict=True):
        assert is_sealed(line.rstrip())
        now = json.loads(line)
        del now["crc32"]
        assert {**before, **now} == before  # what is usual is no longer written


def test_lines_whose_fields_stand_in_another_order_are_read():
    log = read_file(DATA / "profile.jsonl")
    assert log.broken_lines == 0
    assert log.lines[8].requests[0].outcome == "hit"
    assert log.lines[8].spans[2].stage == "compile"
    assert log.lines[6].leaves[1].path == "params['w']"
