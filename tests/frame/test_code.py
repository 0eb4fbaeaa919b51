"""Rows stand for the code that ran: processes that ran other code are never pooled."""

import pytest

from harness.frame.load import frame_of
from harness.frame.process_values import PROGRAM_CHANGED
from tests.frame.trees import record

BEFORE = {"./helper.py": "aaaa", "numpy==2.4.6": "bbbb"}
AFTER = {**BEFORE, "./helper.py": "cccc"}
OTHER = "processes ran other code and are left out"


@pytest.mark.parametrize(
    ("codes", "left", "said"),
    [
        ((BEFORE, BEFORE, AFTER), 1, f"2 of 3 {OTHER}: ./helper.py"),
        ((BEFORE, AFTER), 1, f"1 of 2 {OTHER}: ./helper.py"),
        ((BEFORE, {**BEFORE, "./late.py": "dddd"}, BEFORE), 3, ""),  # some had loaded less
        (({}, {}), 2, ""),
        (({}, {}, AFTER), 1, f"2 of 3 {OTHER}: one did not record what it ran"),
    ],
)
def test_processes_of_other_code_than_the_last_are_left_out_and_said(codes, left, said):
    (row,) = frame_of(record(n, code=code) for n, code in enumerate(codes)).to_dict("records")
    assert (row["n_processes"], row["status"], row["reason"]) == (left, "ok", said)


def test_a_program_that_changed_though_no_code_did_is_said():
    records = [record(0, code=BEFORE, fingerprint=one) for one in "ab"]
    records.append(record(0, code=AFTER, fingerprint="c", commit="2" * 40))
    records += [record(0, fingerprint=one, version="old") for one in "de"]
    assert sorted(frame_of(records)["reason"]) == ["", "", PROGRAM_CHANGED]
