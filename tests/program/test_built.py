"""What XLA makes of well-known programs for three targets, of which only the CPU is here.

The launches on an H200 are those of a table of its own, counted by hand on jax 0.11.2. That table
has 4 for `associative_scan`, whose shape and operator it does not tell; 3, 5, 6 or 8 are seen for
several. For `scan` it says 4 launches in each of 256 iterations and 4 more, one of which is the
loop itself.
"""

import pytest

from harness.targets import registry
from tests.program.built import build

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

QUICK = (*BYTES, "predict", "scan")
ON_TPU = ("softmax", "predict", "scatter_add", "scan", "stencil_set", "sharded_matmul")


def built_for(target, names):
    lacking = registry.find(target).lacking()
    if lacking:
        pytest.skip(lacking)
    return build(target, names)


@pytest.fixture(scope="module")
def on_cpu():
    return built_for("cpu", (*QUICK, "sharded_matmul"))


@pytest.fixture(scope="module")
def on_h200():
    return built_for("gpu:h200", QUICK)


@pytest.fixture(scope="module")
def on_tpu():
    return built_for("tpu:v5e", ON_TPU)


@pytest.mark.nightly
def test_all_programs_are_read_as_some_of_them_are():
    for target, names in (("cpu", ()), ("tpu:v5e", ["attention"])):
        assert all(program["facts"]["launches"] for program in built_for(target, names).values())
    built = built_for("gpu:h200", ())
    assert {name: built[name]["facts"]["launches"] for name in LAUNCHES} == LAUNCHES


def test_launches_loops_and_memory_on_h200(on_h200):
    facts = {name: program["facts"] for name, program in on_h200.items()}
    assert {name: one["launches"] for name, one in facts.items()} == {
        name: LAUNCHES[name] for name in QUICK
    }
    assert facts["scan"]["loop_trips"] == [256]
    # The scores of attention are written out.
    assert facts["attention"]["temporary_bytes"] >= 2 * 8 * 16 * 1024**2 * 4


@pytest.mark.parametrize("name", BYTES)
def test_bytes_on_h200_are_known_though_the_back_end_does_not_say(name, on_h200):
    facts = on_h200[name]["facts"]
    least = facts["argument_bytes"] + facts["output_bytes"]
    assert facts["bytes_accessed"] / least == pytest.approx(BYTES[name], abs=0.02)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("target", "name", "kinds"),
    [
        ("on_h200", "gelu", {"loop": 1}),
        ("on_h200", "softmax", {"custom": 1}),  # Triton
        ("on_h200", "softmax_32768", {"input": 4, "loop": 1}),  # a row no longer fits
        ("on_h200", "predict", {"custom": 1}),
        ("on_tpu", "softmax", {"loop": 2}),
        ("on_tpu", "predict", {"loop": 2, "output": 1}),
    ],
)
def test_fusions_are_read_by_kind(target, name, kinds, request):
    assert request.getfixturevalue(target)[name]["facts"]["fusion_kinds"] == kinds


def test_cost_and_memory_of_a_tpu_program_are_known_and_copies_beside_it_count_once(on_tpu):
    for program in on_tpu.values():
        facts = program["facts"]
        assert facts["flops"] > 0 or facts["bytes_accessed"] > 0
        assert facts["code_bytes"] > 0
        assert facts["launches"] > 0
    # XLA:TPU writes no trip count, so that `launches` counts the body once.
    assert on_tpu["scan"]["facts"]["loop_trips"] == [None]
    assert on_tpu["scan"]["facts"]["launches"] < 20
    program = on_tpu["stencil_set"]
    assert {"copy-start", "copy-done"} <= set(program["opcodes"])
    assert program["facts"]["launches"] < program["facts"]["hlo_instructions"]


def test_a_program_sharded_over_devices_has_its_collectives(on_cpu, on_tpu):
    for built in (on_cpu, on_tpu):
        assert built["sharded_matmul"]["facts"]["collective_kinds"] == {"all-gather": 1}
        assert built["sharded_matmul"]["facts"]["collectives"] == 1
