import math

import pytest

import harness
from harness.errors import UsageError
from harness.frame.against import NUMBERS, break_even
from harness.frame.roofline import fraction, roofline_s
from harness.program.facts import Facts
from harness.records.schema import Comparison
from tests.frame.comparisons import FAST, MB, SLOW, WRONG, ceilings, numpy, side, xla
from tests.frame.trees import failed, record, write

NAN, INF = math.nan, math.inf
LAME = [12e3 / 0.015] * 3
RESIDENT, HOST_BOUND = ({"labels": [label]} for label in ("cache-resident", "host-bound"))
SKIPPED = {"status": "skipped", "reason": "numba is not installed"}
SOFTMAX = {"workload": "softmax.Softmax", "axes": {"width": 4096}}
COPIED_FASTER = {"axes": {"kind": "triad"}, "workload": "c.Ceilings"}
LOOP = Facts(while_loops=1, flops=1e12, bytes_accessed=4e6, launches=256)
KERNELS = {"threads": "all", "backend": "cupy-fused", "slopes_us": FAST}
BUSY = Facts(while_loops=0, flops=40e9, bytes_accessed=120e6)
GEMM_IN_TF32 = {
    **{"axes": {"kind": "gemm"}, "precision": "tf32", "workload": "c.Ceilings"},
    "comparison": {"argument_bytes": 8 * MB, "output_bytes": 4 * MB},
}
FASTER = {"verdict": "XLA faster"}


def at_precision(name):
    sides = [*xla(FAST, facts=BUSY, precision=name), *numpy(SLOW, precision=name)]
    return [*sides, *ceilings(), *side("xla", [100.0], **GEMM_IN_TF32)]


def test_a_row_per_baseline_and_number_of_threads(tmp_path):
    write(tmp_path, *xla(FAST), *numpy(SLOW), *side("fused", FAST), *ceilings())
    write(tmp_path, *xla(FAST, threads="all"), *numpy(SLOW, threads="all"))
    frame = harness.against_baseline(tmp_path)
    assert list(zip(frame["threads"], frame["baseline"], strict=True)) == [
        *(("one", "numpy"), ("one", "fused"), ("all", "numpy"))
    ]
    assert set(frame["width"]) == {4096}
    assert all(frame[name].dtype == float for name in NUMBERS)


ROWS = {
    "a win is shown with what explains it": (
        [*xla(FAST), *numpy(SLOW), *ceilings()],
        FASTER
        | {"ratio": 60.25 / 20.1, "n_xla": 4, "n_baseline": 4, "labels": "", "reasons": ""}
        | {"xla_launches": 1, "baseline_launches": 5, "xla_traffic": 1, "baseline_traffic": 4}
        | {"least_bytes": 120 * MB, "xla_bandwidth": 120e6 / 20.1e-3, "xla_error": 1e-7}
        | {"ceiling_bandwidth": 10e9, "ceiling_flop_rate": 2e12, "roofline_s": 12e-3}
        | {"xla_fraction": 12 / 20.1, "baseline_fraction": 12 / 60.25, "xla_latency_s": 0.020105},
    ),
    "a loss is called as plainly and never pays": (
        [*xla(SLOW), *numpy(FAST)],
        {"verdict": "baseline faster", "break_even_cold": INF, "break_even_warm": INF},
    ),
    "compilation pays after its cost over what a call saves": (
        [*xla([20e3] * 3), *numpy([60e3] * 3)],
        {"xla_compile_cold_s": 0.1, "xla_compile_warm_s": 0.02, "baseline_compile_cold_s": 0}
        | {"baseline_compile_warm_s": 0, "break_even_cold": 3, "break_even_warm": 1},
    ),
    "a baseline with a kernel cache pays with it cold and warm": (
        [
            *xla(FAST, threads="all"),
            *side(stages={"first_call": 520.105e6}, scenario="cold", **KERNELS),
            *side(stages={"first_call": 40.105e6}, scenario="warm", **KERNELS),
        ],
        {"n_baseline": 8, "verdict": "unsure"}
        | {"baseline_compile_cold_s": 0.5, "baseline_compile_warm_s": 0.02},
    ),
    "what the device counted goes before what was read off the program": (
        [*xla(FAST, comparison={"launches": 7}), *numpy(SLOW, comparison={"launches": 9})],
        {"xla_launches": 7, "baseline_launches": 9},
    ),
    "an interval that holds one decides nothing": (
        [*xla([20e3, 25e3, 30e3]), *numpy([21e3, 26e3, 29e3])],
        {"verdict": "unsure", "ratio": 26 / 25},
    ),
    "too few processes have a ratio and no verdict": (
        [*xla(FAST[:2]), *numpy(SLOW)],
        {"ratio": 60.25 / 20.2, "ratio_low": NAN, "verdict": "unsure"}
        | {"reasons": "no interval: a side has fewer than 3 processes"},
    ),
    "a side that failed a check leaves no ratio but its times": (
        [*xla(FAST), *numpy(SLOW[:1], comparison=WRONG)],
        {"verdict": "no ratio: numpy: error 0.3 is above 1e-5", "ratio": NAN, "baseline_s": 0.06},
    ),
    "one process that failed a check is enough and is counted": (
        [*xla(FAST), *numpy(SLOW[1:]), *numpy(SLOW[:1], comparison=WRONG)],
        {"verdict": "no ratio: numpy: 1 of 4 processes: error 0.3 is above 1e-5"},
    ),
    "a side that could not be taken says why": (
        [*xla(FAST), record(0, {}, comparison=Comparison("numpy", "one"), **SKIPPED, **SOFTMAX)],
        {"verdict": "no ratio: numpy: skipped: numba is not installed", "baseline_s": NAN},
    ),
    "a side that is not there was not measured": (
        numpy(SLOW),
        {"verdict": "no ratio: xla: was not measured"},
    ),
    "processes that failed are left out and said": (
        [
            *(*xla(FAST), *numpy(SLOW)),
            failed(9, "killed", comparison=Comparison("numpy", "one"), **SOFTMAX),
        ],
        FASTER | {"reasons": "numpy: 1 of 5 processes failed: killed"},
    ),
    "what is faster than the roofline is rejected": (
        [*xla([5e3] * 3), *numpy(SLOW), *ceilings()],
        {"verdict": "no ratio: xla: faster than the roofline: 240% of it", "ratio": NAN},
    ),
    "what stays in a cache has no fraction and is not rejected": (
        [*xla([5e3] * 3, comparison=RESIDENT), *numpy(SLOW, comparison=RESIDENT), *ceilings()],
        FASTER | {"xla_fraction": NAN, "labels": "cache-resident"},
    ),
    "where nothing leaves the cache like is held against like": (
        [
            *(*xla([5e3] * 3, comparison=RESIDENT), *numpy(SLOW, comparison=RESIDENT)),
            *ceilings(comparison=RESIDENT),
        ],
        FASTER | {"xla_fraction": 2.4, "labels": "cache-resident"},
    ),
    "a ceiling of a cache holds nothing that leaves it": (
        [*xla(FAST), *numpy(SLOW), *ceilings(comparison=RESIDENT)],
        {"xla_fraction": NAN},
    ),
    "far below the roofline XLA is suspected": (
        [*xla(LAME), *numpy(SLOW), *ceilings()],
        {"labels": "possible back-end regression"},
    ),
    "where the host is the limit XLA is not": (
        [*xla(LAME, comparison=HOST_BOUND), *numpy(SLOW), *ceilings()],
        {"labels": "xla: host-bound"},
    ),
    "nor is it where the baseline is lame": (
        [*xla(FAST), *numpy(LAME), *ceilings()],
        {"labels": ""},
    ),
    "the facts of a loop say nothing of its work": (
        [*xla([700e3] * 3, facts=LOOP), *numpy(SLOW), *ceilings()],
        {"flops": NAN, "xla_traffic": NAN, "roofline_s": 12e-3, "labels": ""},
    ),
    **{
        f"ceilings of another {name} hold nothing": (
            [*xla(FAST), *numpy(SLOW), *ceilings(**{name: other})],
            {"roofline_s": NAN, "labels": "no ceilings"},
        )
        for name, other in (
            *(("machine", "other"), ("threads", "all")),
            *(("sweep", "another"), ("target", "gpu")),
        )
    },
    **{
        f"a copy that {why} is no ceiling": (
            [
                *(*xla(FAST), *numpy(SLOW), *ceilings()),
                *side("numpy", [1.0], comparison=comparison, **COPIED_FASTER),
            ],
            {"ceiling_bandwidth": 10e9},
        )
        for why, comparison in (("stayed in a cache", RESIDENT), ("failed a check", WRONG))
    },
    **{
        f"operations at precision {name} are held against products of the same": (
            at_precision(name),
            {"ceiling_flop_rate": rate},
        )
        for name, rate in (("ieee", 2e12), ("tf32", 20e12), ("", 20e12), ("bf16", NAN))
    },
}


@pytest.mark.parametrize("case", ROWS)
def test_a_row_says(case):
    records, expected = ROWS[case]
    (row,) = harness.against_baseline(records).to_dict("records")
    assert {name: row[name] for name in expected} == pytest.approx(expected, nan_ok=True)


def test_processes_and_reference_programs_are_no_rows():
    assert harness.against_baseline(numpy(FAST, workload="process")).empty


def test_an_axis_named_as_a_column_keeps_its_values():
    records = [*xla(FAST, axes={"ratio": 3}), *numpy(FAST, axes={"ratio": 3})]
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
    ("function", "given", "expected"),
    [
        (roofline_s, (134e6, 16e6, 4.3e12, 60e12), 134e6 / 4.3e12),  # bytes are the limit
        (roofline_s, (12e6, 2e12, 4e12, 50e12), 0.04),  # operations are
        (roofline_s, (100, NAN, 10, 5), 10),  # unknown operations leave the bytes
        (roofline_s, (100, 500, 10, NAN), 10),
        (roofline_s, (100, 500, 0, 5), NAN),
        (roofline_s, (100, 500, NAN, 5), NAN),
        (roofline_s, (0, 500, 10, 5), 100),
        (fraction, (0.0, 1.0), NAN),
        (fraction, (1.0, 0), NAN),
        (break_even, (100, 1, 10, 10), 10),  # 90 more at first, 9 less each time
        (break_even, (100, 1, 10, 9), 12),  # 90 / 8 is 11.25: the twelfth call pays
        (break_even, (100, 1, 100, 2), 0),  # no dearer from the start
        (break_even, (5, 1, 10, 2), 0),
        (break_even, (100, 2, 10, 1), INF),  # slower: never
        (break_even, (5, 2, 10, 1), INF),  # cheaper at first and slower: it does not last
        (break_even, (100, 1, 10, 1), INF),
        (break_even, (10, 1, 10, 1), 0),
        (break_even, (NAN, 1, 10, 2), NAN),
        (break_even, (100, 1, 10, NAN), NAN),
    ],
)
def test_least_seconds_the_fraction_of_them_and_the_call_that_pays(function, given, expected):
    assert function(*given) == pytest.approx(expected, nan_ok=True)
