"""Sizes of programs are rows that no noise disturbs; XLA's figures on a CPU decide nothing."""

import pytest

from harness.errors import ExitCode
from harness.frame.load import frame_of
from harness.program.facts import Facts
from harness.verdicts.table import exit_code_of
from tests.verdicts.arms_of import records
from tests.verdicts.words import compare_arms

MB = 1_000_000


def sizes(before, after, target="gpu", stage="temporary memory", **fields):
    """Return the rows of a size, of two arms whose programs have these facts."""
    about = {"target": target, "fingerprint": "f1", **fields}
    a = frame_of(records(stages=("trace", "compile"), facts=Facts(**before), **about))
    b = frame_of(
        records(stages=("trace", "compile"), facts=Facts(**after), **{**about, "fingerprint": "f2"})
    )
    frame = compare_arms(a, b)
    return frame[frame["stage"] == stage], frame


def test_a_step_that_needs_more_temporary_memory_is_more_and_ends_with_1():
    rows, frame = sizes({"temporary_bytes": 10 * MB}, {"temporary_bytes": 36 * MB})
    (row,) = rows.to_dict("records")
    assert (row["verdict"], row["evidence"], row["cause"]) == ("more", "value", "program")
    assert (row["unit"], row["a_s"], row["b_s"]) == ("bytes", 10 * MB, 36 * MB)
    assert row["ratio"] == pytest.approx(3.6)
    assert row["reason"].startswith("10 MB → 36 MB, 3.6 × (threshold 10 %)")
    assert exit_code_of(frame) is ExitCode.WORSE
    rows, frame = sizes({"peak_bytes": 36 * MB}, {"peak_bytes": 10 * MB}, stage="peak memory")
    assert (rows["verdict"].tolist(), exit_code_of(frame)) == (["less"], ExitCode.FINE)


def test_on_a_cpu_memory_is_shown_as_that_of_xla_and_decides_nothing():
    before, after = {"temporary_bytes": 0}, {"temporary_bytes": 36 * MB}
    rows, frame = sizes(before, after, "cpu")
    (row,) = rows.to_dict("records")
    assert (row["verdict"], row["cause"], row["needs"]) == ("unsure", "estimate", "")
    assert "XLA's figure on a CPU leaves out what libraries hold" in row["reason"]
    assert exit_code_of(frame) is ExitCode.FINE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"temporary_bytes": 10 * MB}, {"temporary_bytes": 10.5 * MB}),  # too little of it
        ({"temporary_bytes": 1000}, {"temporary_bytes": 9000}),  # too little
        ({}, {"temporary_bytes": 36 * MB}),  # not known
    ],
)
def test_what_does_not_count_or_is_not_known_is_no_row(before, after):
    assert sizes(before, after)[0].empty
