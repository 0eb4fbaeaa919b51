"""What is said of numbers, names and exceptions, as people and Markdown read it."""

import math
import re
import sys

import jax
import jax.numpy as jnp
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
    ("function", "texts"),
    [
        (
            seconds_text,
            {
                **{
                    0.0: "0 s",
                    3e-7: "300 ns",
                    4.84e-6: "4.8 µs",
                    48e-6: "48 µs",
                    9.96e-4: "996 µs",
                },
                **{0.0041: "4.1 ms", 0.123: "123 ms", 0.9996: "1.0 s", 2.0: "2.0 s"},
                **{41.3: "41 s", 99.6: "1 min 40 s", 3599.4: "59 min 59 s", 7500.0: "2 h 5 min"},
                (0.0041, 0.0002): "4.1 ± 0.2 ms",  # a digit that is not 0
                (0.041, 0.00002): "41.00 ± 0.02 ms",
                (48e-6, 0.0): "48 ± 0 µs",
            },
        ),
        (size_text, {512: "512 B", 1500: "1.5 kB", 999_600: "1 MB", 3.21e6: "3.21 MB"}),
        (share_text, {(690, 1000): "69 %", (4, 1000): "0.4 %", (0, 1000): "0 %", (1, 0): ""}),
        (ratio_text, {1.2749: "1.27×", math.nan: "–"}),
        (some, {("abc", 2): "a, b and 1 more", ("abc", 3): "a, b, c"}),
        (counted, {(1, "build"): "1 build", (2000, "build"): "2,000 builds"}),
        (counted, {(1, "entry"): "1 entry", (0, "entry"): "0 entries"}),
        (
            ago,
            {-5: "5 s ahead", -0.5: "0 s ago", 119: "119 s ago", 7200: "2 h ago", 3e5: "3 d ago"},
        ),
        (printable, {("größer\n\x1b[2J\t", "\n"): "größer\n\\x1b[2J\\x09"}),
        (
            escaped,
            {
                'it\'s a "case"': 'it\'s a "case"',
                "a < b & c": "a &lt; b &amp; c",
                "two\n  lines": "two lines",
                "a|b `c` *d* [e] ~f~ g\\h": r"a\|b `c` \*d\* \[e\] \~f\~ g\\h",
                "_x y_ inner_name": r"\_x y\_ inner_name",
                "one ` alone": r"one \` alone",
                "`<b>`": r"\`&lt;b&gt;\`",
                "@somebody": "&#64;somebody",
                3.5: "3.5",
            },
        ),
    ],
)
def test_what_is_said_of_numbers_and_names(function, texts):
    said = {given: function(*given if isinstance(given, tuple) else (given,)) for given in texts}
    assert said == texts


def test_an_error_in_a_callback_is_told_without_jax_s_frames():
    def unsorted(x):
        raise ValueError("x is not sorted:\n  sort it")

    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(lambda x: jax.pure_callback(unsorted, x, x))(jnp.ones(3)).block_until_ready()
    said = describe(caught.value)
    assert re.fullmatch(
        r"JaxRuntimeError: .*CpuCallback error calling callback: "
        r"ValueError: x is not sorted:\n  sort it \(at test_texts\.py:(\d+)\)",
        said,
    )
    assert said.endswith(f":{unsorted.__code__.co_firstlineno + 1})")


def test_cells_are_escaped_and_headings_are_as_given():
    lines = table_lines(["`a`", "b"], [["1|2", 3]])
    assert lines == ["| `a` | b |", "| --- | --- |", r"| 1\|2 | 3 |"]


def test_an_error_is_told_with_the_line_it_came_from_and_a_long_text_is_cut():
    with pytest.raises(ValueError, match="no") as raised:
        raise ValueError("no")
    assert describe(raised.value).startswith("ValueError: no (at test_texts.py:")
    assert describe(ValueError("no")) == "ValueError: no"
    long = describe(ValueError("x" * 5_000))
    assert (long[-7:], len(long)) == ("xxx ...", REASON_LENGTH + len(" ..."))


def test_who_raised_and_lack_of_memory_are_said():
    assert "nvidia-cudnn-cu13" in describe(RuntimeError("cuDNN not found."))
    assert "pure_callback" in describe(RuntimeError("Unknown backend: 'gpu' requested, but"))
    with pytest.raises(AssertionError) as raised:
        assert sys.argv is None, ""
    raised.value.args = ()
    assert describe(raised.value).startswith("AssertionError: a check of test_texts.py:")
    assert failure(ValueError("no"), "setup()") == "setup() raised ValueError: no"
    assert failure(MemoryError("all")) == "out of memory: MemoryError: all"
    of_jax = RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes")
    assert failure(of_jax, "run").startswith("out of memory: run raised RuntimeError: RESOURCE")
