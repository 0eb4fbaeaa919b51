"""What XLA:TPU makes of some programs for a v5e, none of which is here."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("softmax", {"loop": 2}), ("predict", {"loop": 2, "output": 1})],
)
def test_fusions_on_tpu_are_read_by_kind(name, kinds, on_tpu):
    assert on_tpu[name]["facts"]["fusion_kinds"] == kinds


def test_cost_and_memory_of_a_tpu_program_are_known(on_tpu):
    for program in on_tpu.values():
        facts = program["facts"]
        assert facts["flops"] > 0 or facts["bytes_accessed"] > 0
        assert facts["code_bytes"] > 0
        assert facts["launches"] > 0


def test_copies_that_run_beside_the_program_count_once(on_tpu):
    opcodes = on_tpu["stencil_set"]["opcodes"]
    assert {"copy-start", "copy-done"} <= set(opcodes)
    assert (
        on_tpu["stencil_set"]["facts"]["launches"]
        < on_tpu["stencil_set"]["text"]["hlo_instructions"]
    )


def test_the_loop_of_a_scan_is_not_known_in_length(on_tpu):
    # XLA:TPU writes no trip count, so that `launches` counts the body once.
    assert on_tpu["scan"]["facts"]["loop_trips"] == [None]
    assert on_tpu["scan"]["facts"]["launches"] < 20
