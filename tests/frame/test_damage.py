"""Whatever happens to a records file, nothing is raised, nothing made up, everything counted."""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.records.schema import Problems, encode, read_file
from tests.frame.trees import failed, record

WRITTEN = [
    record(0, {"trace": [1.0, 2.0, 3.0], "execute": [5.0]}, axes={"größe": 1, "name": "ä\n\u2028"}),
    record(1, fingerprint="f", reference_ns={"trace": 2.0}),
    failed(2, "ValueError: " + "x" * 50),
]
LINES = [encode(one) for one in WRITTEN]
VALID = b"".join(LINES)


def read(data: bytes):
    """Return what a reader finds in a file of `data`."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.jsonl")
        path.write_bytes(data)
        problems = Problems()
        return list(read_file(path, problems)), problems


def assert_only_what_was_written(data: bytes):
    records, problems = read(data)
    known = [msgspec.json.encode(one) for one in WRITTEN]
    assert all(msgspec.json.encode(one) in known for one in records)
    if problems.unreadable:  # nothing in it is like a record: it is counted as one
        assert (records, problems.torn, problems.corrupt) == ([], 0, 0)
        assert not any(line[:20] in data for line in LINES)
        return
    lines = [line for line in data.split(b"\n") if line.strip()]
    counted = problems.torn + problems.corrupt + problems.other_schema
    assert len(records) + counted == len(lines)
    assert problems.torn <= 1


@given(st.binary(max_size=300))
def test_random_bytes_hold_no_records_and_raise_nothing(data):
    assert_only_what_was_written(data)


@given(st.integers(0, len(VALID)))
def test_a_file_cut_anywhere_keeps_its_whole_lines(end):
    assert_only_what_was_written(VALID[:end])
    records, _ = read(VALID[:end])
    whole = VALID[:end].count(b"\n")
    # A line that lacks nothing but its newline is whole as well.
    assert len(records) in (whole, whole + 1)


@settings(max_examples=200)
@given(st.integers(0, len(VALID) * 8 - 1))
def test_a_flipped_bit_costs_the_lines_it_is_in_and_no_other(bit):
    data = bytearray(VALID)
    data[bit // 8] ^= 1 << bit % 8
    assert_only_what_was_written(bytes(data))
    records, _ = read(bytes(data))
    assert len(records) >= len(WRITTEN) - 2  # a lost newline joins two lines


@given(st.integers(0, len(VALID)), st.binary(max_size=40))
def test_bytes_put_anywhere_make_no_record(position, data):
    assert_only_what_was_written(VALID[:position] + data + VALID[position:])


@given(st.lists(st.integers(0, len(LINES) - 1), max_size=8))
def test_lines_in_any_order_and_number_are_all_read(order):
    records, problems = read(b"".join(LINES[number] for number in order))
    assert len(records) == len(order)
    assert not problems
