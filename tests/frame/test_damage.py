"""Whatever happens to a records file, nothing is raised, nothing made up, everything counted."""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.records.schema import Problems, encode, read_file
from tests.damaged import ways
from tests.frame.trees import failed, record

WRITTEN = [
    record(0, {"trace": [1.0, 2.0, 3.0], "execute": [5.0]}, axes={"größe": 1, "name": "ä\n\u2028"}),
    record(1, fingerprint="f", reference_ns={"trace": 2.0}),
    failed(2, "ValueError: " + "x" * 50),
]
KNOWN = [msgspec.json.encode(one) for one in WRITTEN]
LINES = [encode(one) for one in WRITTEN]
VALID = b"".join(LINES)


def only_what_was_written(data: bytes) -> int:
    """Return how many records a reader finds in `data`; all others are counted."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.jsonl")
        path.write_bytes(data)
        problems = Problems()
        records = list(read_file(path, problems))
    assert all(msgspec.json.encode(one) in KNOWN for one in records)
    if problems.unreadable:  # nothing in it is like a record: it is counted as one
        assert (records, problems.torn, problems.corrupt) == ([], 0, 0)
        assert not any(line[:20] in data for line in LINES)
        return 0
    lines = [line for line in data.split(b"\n") if line.strip()]
    counted = problems.torn + problems.corrupt + problems.other_schema
    assert len(records) + counted == len(lines)
    assert problems.torn <= 1
    return len(records)


@settings(max_examples=300)
@given(st.sampled_from([*ways.BY_CHANCE.values()]), st.randoms(use_true_random=True))
def test_a_file_that_was_damaged_holds_no_other_records(way, rng):
    only_what_was_written(way(VALID, rng))


@given(st.integers(0, len(VALID)))
def test_a_file_cut_anywhere_keeps_its_whole_lines(end):
    whole = VALID[:end].count(b"\n")
    # A line that lacks nothing but its newline is whole as well.
    assert only_what_was_written(VALID[:end]) in (whole, whole + 1)


@given(st.randoms(use_true_random=True))
def test_a_flipped_bit_costs_the_lines_it_is_in_and_no_other(rng):
    # A lost newline joins two lines.
    assert only_what_was_written(ways.flipped(VALID, rng)) >= len(WRITTEN) - 2


@given(st.lists(st.sampled_from(LINES), max_size=8))
def test_lines_in_any_order_and_number_are_all_read(lines):
    assert only_what_was_written(b"".join(lines)) == len(lines)
