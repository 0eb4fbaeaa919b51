"""What XLA:GPU makes of well-known programs for an H200, none of which is here.

The launches are those of a table of its own, counted by hand on jax 0.11.2. That table has
4 for `associative_scan`, whose shape and operator it does not tell; 3, 5, 6 or 8 are seen for
several. For `scan` it says 4 launches in each of 256 iterations and 4 more, one of which is the
loop itself.
"""

from __future__ import annotations

import pytest

LAUNCHES = {
    "gelu": 1,
    "swish": 1,
    "black_scholes": 1,
    "softmax": 1,
    "softmax_16384": 1,
    "softmax_32768": 5,
    "layer_norm": 1,
    "log_sum_exp": 4,
    "variance": 1,
    "sum_of_squares": 2,
    "mse_and_gradient": 3,
    "stencil_interior": 1,
    "stencil_padded": 1,
    "stencil_set": 6,
    "predict": 1,
    "batched_matmul": 1,
    "attention": 3,
    "linear_gradient": 4,
    "n_body": 3,
    "gather": 1,
    "scatter_add": 2,
    "power_spectrum": 2,
    "scan": 256 * 4 + 3,
    "cumulative_sum": 4,
}

BYTES = {"gelu": 1, "softmax": 1, "softmax_32768": 2.01, "stencil_set": 8, "attention": 17}
"""Bytes accessed over those of arguments and outputs."""


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_on_h200(name, on_h200):
    assert on_h200[name]["facts"]["launches"] == LAUNCHES[name]


@pytest.mark.parametrize("name", BYTES)
def test_bytes_on_h200_are_known_though_the_back_end_does_not_say(name, on_h200):
    facts = on_h200[name]["facts"]
    least = facts["argument_bytes"] + facts["output_bytes"]
    assert facts["bytes_accessed"] / least == pytest.approx(BYTES[name], abs=0.02)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("gelu", {"loop": 1}),
        ("softmax", {"custom": 1}),  # Triton
        ("softmax_32768", {"input": 4, "loop": 1}),  # a row no longer fits
        ("predict", {"custom": 1}),
    ],
)
def test_kinds_of_fusions_on_h200(name, kinds, on_h200):
    assert on_h200[name]["facts"]["fusion_kinds"] == kinds


def test_the_scores_of_attention_are_written_out(on_h200):
    assert on_h200["attention"]["facts"]["temporary_bytes"] >= 2 * 8 * 16 * 1024**2 * 4


def test_the_loop_of_a_scan_is_known_in_length(on_h200):
    assert on_h200["scan"]["facts"]["loop_trips"] == [256]
