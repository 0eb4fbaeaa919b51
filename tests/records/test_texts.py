"""What is said of numbers, names and exceptions, as people and Markdown read it."""

import math

import pytest

from harness.records.failure import REASON_LENGTH, describe, failure
from harness.records.printable import escaped, printable, table_lines
from harness.records.units import (
    ago,
    counted,
    ratio_text,
    seconds_text,
    share_text,
    size_text,
    some,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (3e-7, "300 ns"),
        (4.84e-6, "4.8 µs"),
        (48e-6, "48 µs"),
        (9.96e-4, "996 µs"),
        (0.0041, "4.1 ms"),
        (0.123, "123 ms"),
        (0.9996, "1.0 s"),
        (2.0, "2.0 s"),
        (41.3, "41 s"),
        (99.6, "1 min 40 s"),
        (3599.4, "59 min 59 s"),
        (7500.0, "2 h 5 min"),
    ],
)
def test_a_time_has_a_unit_that_suits_it(seconds, text):
    assert seconds_text(seconds) == text


def test_an_interval_has_the_unit_of_its_time_and_a_digit_that_is_not_0():
    assert seconds_text(0.0041, 0.0002) == "4.1 ± 0.2 ms"
    assert seconds_text(0.041, 0.00002) == "41.00 ± 0.02 ms"
    assert seconds_text(48e-6, 0.0) == "48 ± 0 µs"


def test_what_steers_a_terminal_is_written_out():
    assert printable("größer\n\x1b[2J\t", kept="\n") == "größer\n\\x1b[2J\\x09"


def test_sizes_shares_ratios_and_counts():
    sizes = (512, 1500, 999_600, 3.21e6)
    assert [size_text(size) for size in sizes] == ["512 B", "1.5 kB", "1 MB", "3.21 MB"]
    assert [share_text(part, 1000) for part in (690, 4, 0)] == ["69 %", "0.4 %", "0 %"]
    assert share_text(1, 0) == ""
    assert [ratio_text(ratio) for ratio in (1.2749, math.nan)] == ["1.27×", "–"]
    assert [some("abc", most) for most in (2, 3)] == ["a, b and 1 more", "a, b, c"]
    assert [counted(number, "build") for number in (1, 2000)] == ["1 build", "2,000 builds"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "5 s ahead"), (-0.5, "0 s ago"), (119, "119 s ago"), (7200, "2 h ago"), (3e5, "3 d ago")],
)
def test_how_long_ago_something_was(seconds, text):
    assert ago(seconds) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('it\'s a "case"', 'it\'s a "case"'),
        ("a < b & c", "a &lt; b &amp; c"),
        ("two\n  lines", "two lines"),
        ("a|b `c` *d* [e] ~f~ g\\h", r"a\|b \`c\` \*d\* \[e\] \~f\~ g\\h"),
        ("_x y_ inner_name", r"\_x y\_ inner_name"),
        ("@somebody", "&#64;somebody"),
        (3.5, "3.5"),
    ],
)
def test_text_is_escaped_where_it_would_mean_something(text, expected):
    assert escaped(text) == expected


def test_cells_are_escaped_and_headings_are_as_given():
    assert table_lines(["`a`", "b"], [["1|2", 3]]) == [
        "| `a` | b |",
        "| --- | --- |",
        r"| 1\|2 | 3 |",
    ]


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_an_error_is_told_with_the_line_it_came_from():
    assert describe(raised(ValueError("no"))).startswith("ValueError: no (at test_texts.py:")
    assert describe(ValueError("no")) == "ValueError: no"


def test_a_long_text_is_cut():
    assert describe(ValueError("x" * 5_000)).endswith("xxx ...")
    assert len(describe(ValueError("x" * 5_000))) == REASON_LENGTH + len(" ...")


def test_who_raised_and_lack_of_memory_are_said():
    assert failure(ValueError("no"), "setup()") == "setup() raised ValueError: no"
    assert failure(MemoryError("all")) == "out of memory: MemoryError: all"
    of_jax = RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes")
    assert failure(of_jax, "run").startswith("out of memory: run raised RuntimeError: RESOURCE")
