"""Changes that are planted into real processes are told, and nothing is told where none is."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from harness.errors import ExitCode
from harness.frame.pairs import Arm, pair
from harness.output.comparison import stage_lines, summary_text
from harness.output.comparison_markdown import to_markdown
from harness.output.verdicts import reasons_of, sentence
from harness.verdicts.compare import judged_pairs
from harness.verdicts.table import exit_code_of as exit_code
from harness.workload.filters import Filters
from tests.verdicts.planted import arms, slowed
from tests.verdicts.words import compare_arms

CALLED = ["slower", "faster", "broken"]


def stage_of(frame, name):
    """Return the rows of one stage."""
    return frame[frame["stage"] == name]


@pytest.mark.nightly
def test_identical_arms_are_silent():
    """Of 10 pairs: few rows, few families, and no stage as a whole."""
    called, families, rows, stages = 0, 0, 0, 0
    for seed in range(10):
        frame = compare_arms(*(one.assign(fingerprint="") for one in arms(seed)))
        flagged = frame["verdict"].isin(CALLED)
        called, rows = called + int(flagged.sum()), rows + len(frame)
        families += frame[flagged]["stage"].nunique()
        stages += frame[frame["stage_verdict"].isin(CALLED)]["stage"].nunique()
    assert rows > 2_500
    assert called / rows < 0.005
    assert families <= 0.1 * 10 * 4
    assert stages == 0


def test_a_slower_runtime_with_equal_programs_is_the_environment():
    a, b = arms(1)
    b = slowed(b, "execute", 1.5).assign(jaxlib="0.10.3")
    b["environment"] = b["environment"].str.replace('"jaxlib":"0.12.0.1"', '"jaxlib":"0.12.9"')
    frame = compare_arms(a, b)
    own = stage_of(frame, "execute")

    assert exit_code(frame) == ExitCode.WORSE
    assert set(own["stage_verdict"]) == {"slower"}
    assert (own["verdict"] == "slower").mean() > 0.9
    assert set(own["cause"][own["verdict"] == "slower"]) == {"environment"}
    assert "environment: jaxlib 0.12.0.1 → 0.12.9" in own["stage_reason"].iloc[0]
    assert "execute as a whole slower" in summary_text(frame)
    assert not frame["verdict"][frame["stage"] != "execute"].isin(CALLED).any()


def test_a_uniform_change_under_one_version_is_told():
    a, b = arms(2)
    comparison = judged_pairs(pair(Arm("a", a), Arm("b", slowed(b, "trace", 1.3))))
    frame = reasons_of(comparison)
    own = stage_of(frame, "trace")

    assert exit_code(frame) == ExitCode.WORSE
    assert own["stage_ratio"].iloc[0] == pytest.approx(1.3, rel=0.05)
    assert (own["verdict"] == "slower").mean() > 0.8
    assert own["reason"].str.endswith("; the whole stage is slower").all()
    (line,) = stage_lines(frame)
    assert re.match(
        r"trace as a whole: slower. 3\d % slower in most of \d+ cases \(threshold 20 %", line
    )
    assert "**trace as a whole: slower. 3" in to_markdown(comparison)
    assert re.match(r"trace is 3\d % slower in most cases; ", sentence(comparison))


def test_some_slow_processes_are_told_and_their_rows_say_it():
    a, b = (one.assign(fingerprint="") for one in arms(3))  # else proof excuses compiles
    frame = compare_arms(a, slowed(b, "compile", 1.5, range(2, 5)))
    own = stage_of(frame, "compile")

    assert exit_code(frame) == ExitCode.WORSE
    (line,) = stage_lines(frame)
    assert "compile as a whole: slower. 3 of 8 processes of B are slower in most cases" in line
    assert own["reason"].str.endswith("some processes of the stage are slower").all()
    # Where A is disturbed as often, that is what the machine does.
    both = compare_arms(*(slowed(one, "compile", 1.5, range(2, 5)) for one in (a, b)))
    assert not both["stage_verdict"].isin(CALLED).any()
    healed = compare_arms(slowed(a, "compile", 1.5, range(2, 5)), b)
    assert exit_code(healed) == ExitCode.FINE
    assert "3 of 8 processes of A are slower" in stage_lines(healed)[0]


def test_a_second_mode_of_calls_is_told_where_the_least_call_is_the_same():
    a, b = arms(4)
    frame = compare_arms(a, slowed(b, "execute", more_s=1e-3, column="p90_samples"))
    own = stage_of(frame, "execute")
    quick = own["a_s"] < 3e-4

    assert exit_code(frame) == ExitCode.WORSE
    assert (own["evidence"][quick] == "calls").mean() > 0.8
    said = own["reason"][own["evidence"] == "calls"]
    assert said.str.contains("some calls: the slowest tenth is ").all()


@pytest.mark.parametrize(
    "filters",
    [
        Filters(select=("Heat",), stage=("compile",)),
        Filters(case=("size=64",)),
    ],
    ids=str,
)
def test_filters_hide_rows_and_change_no_verdict(filters):
    a, b = arms(7)
    b = slowed(slowed(b, "trace", 1.3), "compile", 1.15, range(7))
    b["samples"] = [
        [s * 1.12 for s in own] if n % 5 == 0 else own for n, own in enumerate(b["samples"])
    ]
    named = pair(Arm("a", a), Arm("b", b))
    whole = judged_pairs(named).frame
    shown = judged_pairs(named, filters=filters).frame

    assert 0 < len(shown) < len(whole)
    texts = [Counter(map(str, frame.to_numpy().tolist())) for frame in (shown, whole)]
    assert not texts[0] - texts[1]
    assert whole["verdict"].nunique() > 2
