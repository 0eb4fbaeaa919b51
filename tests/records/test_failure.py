"""What a record says of an exception: its text, where it came from, and whether memory ran out."""

from __future__ import annotations

from harness.records.failure import REASON_LENGTH, describe, failure


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_an_error_is_told_with_the_line_it_came_from():
    assert describe(raised(ValueError("no"))).startswith("ValueError: no (at test_failure.py:")
    assert describe(ValueError("no")) == "ValueError: no"


def test_a_long_text_is_cut():
    assert describe(ValueError("x" * 5_000)).endswith("xxx ...")
    assert len(describe(ValueError("x" * 5_000))) == REASON_LENGTH + len(" ...")


def test_who_raised_and_lack_of_memory_are_said():
    assert failure(ValueError("no"), "setup()") == "setup() raised ValueError: no"
    assert failure(MemoryError("all")) == "out of memory: MemoryError: all"
    of_jax = RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes")
    assert failure(of_jax, "run").startswith("out of memory: run raised RuntimeError: RESOURCE")
