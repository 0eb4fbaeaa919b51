"""Rows stand for the code that ran: processes that ran other code are never pooled."""

from harness.frame.load import everything, frame_of
from harness.frame.record_cases import PROGRAM_CHANGED
from tests.frame.trees import record, write

BEFORE = {"./helper.py": "aaaa", "numpy==2.4.6": "bbbb"}
AFTER = {**BEFORE, "./helper.py": "cccc"}


def test_processes_of_other_code_than_the_last_are_left_out_and_said(tmp_path):
    write(tmp_path, record(0, code=BEFORE), record(1, code=BEFORE), record(2, code=AFTER))
    (row,) = everything(tmp_path).to_dict("records")
    assert (row["n_processes"], row["status"]) == (1, "ok")
    text = "2 of 3 processes ran other code and are left out: ./helper.py"
    assert row["reason"] == text
    (same,) = frame_of([record(0, code=BEFORE), record(1, code=AFTER)]).to_dict("records")
    assert same["n_processes"] == 1


def test_a_program_that_changed_though_no_code_did_is_said(tmp_path):
    write(
        tmp_path, record(0, code=BEFORE, fingerprint="a"), record(0, code=BEFORE, fingerprint="b")
    )
    write(tmp_path, record(0, code=AFTER, fingerprint="c", commit="2" * 40))
    write(tmp_path, *(record(0, fingerprint=one, version="old") for one in "de"))
    reasons = [row["reason"] for row in everything(tmp_path).to_dict("records")]
    assert sorted(reasons) == ["", "", PROGRAM_CHANGED]


def test_what_only_some_loaded_by_then_is_no_other_code(tmp_path):
    lazily = {**BEFORE, "./late.py": "dddd"}
    write(tmp_path, record(0, code=BEFORE), record(1, code=lazily), record(2, code=BEFORE))
    (row,) = everything(tmp_path).to_dict("records")
    assert (row["n_processes"], row["reason"]) == (3, "")


def test_records_that_do_not_say_what_they_ran_are_read_and_never_pooled_with_others(tmp_path):
    write(tmp_path / "old", record(0), record(1))
    (row,) = everything(tmp_path / "old").to_dict("records")
    assert (row["n_processes"], row["reason"]) == (2, "")
    write(tmp_path / "mixed", record(0), record(1), record(2, code=AFTER))
    (row,) = everything(tmp_path / "mixed").to_dict("records")
    assert row["n_processes"] == 1
    assert row["reason"].endswith("left out: one did not record what it ran")
