import math

import pytest

import harness
from harness.errors import UsageError
from harness.frame.against import break_even
from harness.frame.against_tables import NUMBERS
from harness.frame.roofline import fraction, roofline_s
from harness.program.facts import Facts
from tests.frame.comparisons import MB, ceilings, numpy, side, xla
from tests.frame.trees import failed, write

NAN, INF = math.nan, math.inf
FAST = [20e3, 20.4e3, 19.8e3, 20.2e3]
SLOW = [60e3, 61e3, 59e3, 60.5e3]
TINY = [1e3, 1.02e3, 0.98e3]


def only(records):
    (row,) = harness.against_baseline(records).to_dict("records")
    return row


def test_a_row_per_baseline_and_number_of_threads(tmp_path):
    write(
        tmp_path,
        *xla(FAST),
        *numpy(SLOW),
        *side("fused", FAST),
        *xla(FAST, threads="all"),
        *numpy(SLOW, threads="all"),
        *ceilings(),
    )
    frame = harness.against_baseline(tmp_path)
    assert list(zip(frame["threads"], frame["baseline"], strict=True)) == [
        ("one", "numpy"),
        ("one", "fused"),
        ("all", "numpy"),
    ]
    assert set(frame["width"]) == {4096}
    assert all(frame[name].dtype == float for name in NUMBERS)


def test_a_win_is_called_by_its_interval_and_shown_with_what_explains_it():
    row = only([*xla(FAST), *numpy(SLOW), *ceilings()])
    assert row["verdict"] == "XLA faster"
    assert row["ratio"] == pytest.approx(60.25 / 20.1)
    assert 1 < row["ratio_low"] < row["ratio"] < row["ratio_high"]
    assert (row["n_xla"], row["n_baseline"]) == (4, 4)
    assert (row["xla_launches"], row["baseline_launches"]) == (1, 5)
    assert (row["xla_traffic"], row["baseline_traffic"]) == (1, 4)
    assert row["least_bytes"] == 120 * MB
    assert row["xla_bandwidth"] == pytest.approx(120e6 / 20.1e-3)
    assert row["ceiling_bandwidth"] == pytest.approx(10e9)
    assert row["ceiling_flop_rate"] == pytest.approx(2e12)
    assert row["roofline_s"] == pytest.approx(12e-3)
    assert row["xla_fraction"] == pytest.approx(12 / 20.1)
    assert row["baseline_fraction"] == pytest.approx(12 / 60.25)
    assert row["xla_latency_s"] == pytest.approx(20.105e-3)
    assert (row["xla_error"], row["labels"], row["reasons"]) == (1e-7, "", "")


def test_a_loss_is_called_as_plainly_and_never_pays():
    row = only([*xla(SLOW), *numpy(FAST)])
    assert row["verdict"] == "baseline faster"
    assert row["ratio_high"] < 1
    assert row["break_even_cold"] == row["break_even_warm"] == math.inf


def test_compilation_pays_after_its_cost_over_what_a_call_saves():
    row = only([*xla([20e3] * 3), *numpy([60e3] * 3)])
    assert row["xla_compile_cold_s"] == pytest.approx(0.100)
    assert row["xla_compile_warm_s"] == pytest.approx(0.020)
    assert row["baseline_compile_cold_s"] == row["baseline_compile_warm_s"] == 0
    assert (row["break_even_cold"], row["break_even_warm"]) == (3, 1)


def test_a_baseline_with_a_kernel_cache_pays_with_it_cold_and_warm():
    cold = side("cupy-fused", FAST, {"first_call": 520e6}, scenario="cold", threads="all")
    warm = side("cupy-fused", FAST, {"first_call": 40e6}, scenario="warm", threads="all")
    row = only([*xla(FAST, threads="all"), *cold, *warm])
    assert row["n_baseline"] == 8
    assert row["baseline_compile_cold_s"] == pytest.approx(0.5, rel=0.01)
    assert row["baseline_compile_warm_s"] == pytest.approx(0.02, rel=0.01)
    assert row["verdict"] == "unsure"


def test_what_the_device_counted_goes_before_what_was_read_off_the_program():
    counted = {"launches": 7}
    row = only([*xla(FAST, comparison=counted), *numpy(SLOW, comparison={"launches": 9})])
    assert (row["xla_launches"], row["baseline_launches"]) == (7, 9)


def test_an_interval_that_holds_one_decides_nothing():
    row = only([*xla([20e3, 25e3, 30e3]), *numpy([21e3, 26e3, 29e3])])
    assert row["verdict"] == "unsure"
    assert row["ratio_low"] < 1 < row["ratio_high"]


def test_too_few_processes_have_a_ratio_and_no_verdict():
    row = only([*xla(FAST[:2]), *numpy(SLOW)])
    assert row["ratio"] > 2
    assert math.isnan(row["ratio_low"])
    assert row["verdict"] == "unsure"
    assert "fewer than 3 processes" in row["reasons"]


def test_a_side_that_failed_a_check_leaves_no_ratio_but_its_times():
    wrong = {"comparable": False, "reasons": ["error 0.3 is above 1e-5"]}
    row = only([*xla(FAST), *numpy(SLOW[:1], comparison=wrong)])
    assert row["verdict"] == "no ratio: numpy: error 0.3 is above 1e-5"
    assert math.isnan(row["ratio"])
    assert row["baseline_s"] == pytest.approx(60e-3)


def test_one_process_that_failed_a_check_is_enough_and_is_counted():
    records = [*xla(FAST), *numpy(SLOW)]
    records[-1].comparison.comparable = False
    records[-1].comparison.reasons = ["used 2 cores"]
    assert only(records)["verdict"] == "no ratio: numpy: 1 of 4 processes: used 2 cores"


def test_a_side_that_could_not_be_taken_says_why():
    skipped = numpy(SLOW[:1])[0]
    skipped.status, skipped.reason, skipped.stages = "skipped", "numba is not installed", {}
    row = only([*xla(FAST), skipped])
    assert row["verdict"] == "no ratio: numpy: skipped: numba is not installed"
    assert math.isnan(row["baseline_s"])
    assert only(numpy(SLOW))["verdict"] == "no ratio: xla: was not measured"


def test_processes_that_failed_are_left_out_and_said():
    records = [*xla(FAST), *numpy(SLOW)]
    crash = failed(9, "killed", workload="softmax.Softmax", axes={"width": 4096})
    crash.key, crash.comparison = records[-1].key, records[-1].comparison
    row = only([*records, crash])
    assert row["verdict"] == "XLA faster"
    assert row["reasons"] == "numpy: 1 of 5 processes failed: killed"


def test_what_is_faster_than_the_roofline_is_rejected():
    row = only([*xla([5e3] * 3), *numpy(SLOW), *ceilings()])
    assert row["verdict"].startswith("no ratio: xla: faster than the roofline: 240% of it")
    assert math.isnan(row["ratio"])


def test_what_stays_in_a_cache_has_no_fraction_and_is_not_rejected():
    resident = {"labels": ["cache-resident"]}
    row = only(
        [*xla([5e3] * 3, comparison=resident), *numpy(SLOW, comparison=resident), *ceilings()]
    )
    assert row["verdict"] == "XLA faster"
    assert math.isnan(row["xla_fraction"])
    assert row["labels"] == "cache-resident"


def test_where_nothing_leaves_the_cache_like_is_held_against_like():
    resident = {"labels": ["cache-resident"]}
    sides = [*xla([5e3] * 3, comparison=resident), *numpy(SLOW, comparison=resident)]
    row = only([*sides, *ceilings(comparison=resident)])
    assert row["xla_fraction"] == pytest.approx(2.4)
    assert row["verdict"] == "XLA faster"
    assert row["labels"] == "cache-resident"
    left = only([*xla(FAST), *numpy(SLOW), *ceilings(comparison=resident)])
    assert math.isnan(left["xla_fraction"])


def test_far_below_the_roofline_xla_is_suspected_unless_the_host_is_the_limit():
    lame = [12e3 / 0.015] * 3
    assert only([*xla(lame), *numpy(SLOW), *ceilings()])["labels"] == "possible back-end regression"
    host = xla(lame, comparison={"labels": ["host-bound"]})
    assert only([*host, *numpy(SLOW), *ceilings()])["labels"] == "xla: host-bound"
    assert only([*xla(FAST), *numpy(lame), *ceilings()])["labels"] == ""


def test_the_facts_of_a_loop_say_nothing_of_its_work():
    loop = Facts(while_loops=1, flops=1e12, bytes_accessed=4e6, launches=256)
    row = only([*xla([700e3] * 3, facts=loop), *numpy(SLOW), *ceilings()])
    assert math.isnan(row["flops"])
    assert math.isnan(row["xla_traffic"])
    assert row["roofline_s"] == pytest.approx(12e-3)
    assert row["labels"] == ""


@pytest.mark.parametrize(
    "elsewhere", [{"machine": "other"}, {"threads": "all"}, {"sweep": "another"}, {"target": "gpu"}]
)
def test_ceilings_of_another_place_or_sweep_hold_nothing(elsewhere):
    row = only([*xla(FAST), *numpy(SLOW), *ceilings(**elsewhere)])
    assert math.isnan(row["roofline_s"])
    assert row["labels"] == "no ceilings"


def test_a_copy_that_stayed_in_a_cache_or_failed_a_check_is_no_ceiling():
    for wrong in ({"labels": ["cache-resident"]}, {"comparable": False}):
        bad = side("numpy", [1.0], axes={"kind": "triad"}, workload="c.Ceilings", comparison=wrong)
        row = only([*xla(FAST), *numpy(SLOW), *ceilings(), *bad])
        assert row["ceiling_bandwidth"] == pytest.approx(10e9)


def test_operations_are_held_against_products_of_equal_dtype_and_precision():
    busy = Facts(while_loops=0, flops=40e9, bytes_accessed=120e6)
    records = [
        *ceilings(),
        *side(
            "xla",
            [100.0],
            axes={"kind": "gemm"},
            precision="tf32",
            workload="c.Ceilings",
            comparison={"argument_bytes": 8 * MB, "output_bytes": 4 * MB},
        ),
    ]

    def rate(precision):
        sides = [
            *xla(FAST, facts=busy, precision=precision),
            *numpy(SLOW, precision=precision),
        ]
        return only([*sides, *records])["ceiling_flop_rate"]

    assert rate("ieee") == pytest.approx(2e12)
    assert rate("tf32") == pytest.approx(20e12)
    assert rate("") == pytest.approx(20e12)
    assert math.isnan(rate("bf16"))


def test_processes_and_reference_programs_are_no_rows():
    assert harness.against_baseline(side("numpy", TINY, workload="process")).empty


def test_an_axis_named_as_a_column_keeps_its_values():
    records = [r for one in (xla(TINY), numpy(TINY)) for r in one]
    for record in records:
        record.axes = {"ratio": 3}
    assert harness.against_baseline(records)["axis_ratio"].tolist() == [3]


def test_a_later_record_of_a_process_replaces_the_earlier(tmp_path):
    write(tmp_path, *xla(SLOW), *numpy(SLOW), *xla(FAST))
    (ratio,) = harness.against_baseline(tmp_path)["ratio"]
    assert ratio > 2


def test_no_tree_is_an_error_and_an_empty_one_an_empty_frame(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        harness.against_baseline(tmp_path / "none")
    frame = harness.against_baseline(tmp_path)
    assert frame.empty
    assert "verdict" in frame.columns


@pytest.mark.parametrize(
    ("least_bytes", "flops", "bandwidth", "flop_rate", "seconds"),
    [
        (134e6, 16e6, 4.3e12, 60e12, 134e6 / 4.3e12),  # bytes are the limit
        (12e6, 2e12, 4e12, 50e12, 0.04),  # operations are
        (100, NAN, 10, 5, 10),  # unknown operations leave the bytes
        (100, 500, 10, NAN, 10),
        (100, 500, 0, 5, NAN),
        (100, 500, NAN, 5, NAN),
        (0, 500, 10, 5, 100),
    ],
)
def test_the_roofline_is_the_slower_of_bytes_and_operations(
    least_bytes, flops, bandwidth, flop_rate, seconds
):
    found = roofline_s(least_bytes, flops, bandwidth, flop_rate)
    assert found == pytest.approx(seconds, nan_ok=True)


def test_the_fraction_is_of_the_time_taken():
    assert fraction(1.0, 4.0) == 0.25
    assert fraction(2.0, 1.0) == 2.0
    for unknown in (fraction(NAN, 1.0), fraction(1.0, NAN), fraction(0.0, 1.0), fraction(1.0, 0)):
        assert math.isnan(unknown)


@pytest.mark.parametrize(
    ("one", "other", "calls"),
    [
        ((100, 1), (10, 10), 10),  # 90 more at first, 9 less each time
        ((100, 1), (10, 9), 12),  # 90 / 8 is 11.25: the twelfth call pays
        ((100, 1), (100, 2), 0),  # no dearer from the start
        ((5, 1), (10, 2), 0),
        ((100, 2), (10, 1), INF),  # slower: never
        ((5, 2), (10, 1), INF),  # cheaper at first and slower: it does not last
        ((100, 1), (10, 1), INF),
        ((10, 1), (10, 1), 0),
        ((NAN, 1), (10, 2), NAN),
        ((100, 1), (10, NAN), NAN),
    ],
)
def test_the_break_even_is_the_call_that_pays(one, other, calls):
    found = break_even(*one, *other)
    assert found == pytest.approx(calls, nan_ok=True)
    if math.isfinite(calls):

        def cost(side, n):
            return side[0] + n * side[1]

        assert cost(one, found) <= cost(other, found)
        if found:
            assert cost(one, found - 1) > cost(other, found - 1)
