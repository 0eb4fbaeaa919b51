"""Where the time to a first result goes, and what the persistent cache saves of it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import harness
from harness.frame.load import everything, frame_of
from harness.frame.startup import PHASES
from harness.records.schema import FIRST_CALL, to_raw
from tests.frame.cases import HOSTILE, case, frame
from tests.frame.trees import record

ONCE = {"import": 0.3, "backend": 0.1, "first_lower": 0.02, "first_compile": 0.03, "ready": 0.5}
BUILT = {"trace": 0.01, "lower": 0.02, "compile": 0.2}


def process(stages=ONCE, **fields):
    return case(stages, workload="process", axes={}, version="1", **fields)


def test_the_phases_of_a_case_and_their_shares_sum_to_its_total():
    found = harness.phases(frame(process(), case({**BUILT, "execute": 0.001})))
    assert len(found) == 1
    row = found.iloc[0]
    assert row["workload"] == "family.Work"
    assert row["size"] == 8
    expected = {"python": 0.1, **{k: v for k, v in ONCE.items() if k != "ready"}, **BUILT}
    for phase, seconds in {**expected, "execute": 0.001}.items():
        assert row[f"{phase}_s"] == pytest.approx(seconds)
    assert math.isnan(row["load_s"])
    assert row["total_s"] == pytest.approx(0.5 + 0.05 + 0.23 + 0.001)
    assert sum(row[f"{phase}_share"] for phase in PHASES if phase != "load") == pytest.approx(1)
    assert row["compile_share"] == pytest.approx(0.2 / row["total_s"])
    assert row["missing"] == ""


@pytest.mark.parametrize(("protocol", "first_s"), [(FIRST_CALL, 0.09), ("of old", 0.04)])
def test_a_warm_cache_has_load_for_compile_and_the_rest_of_the_first_call(protocol, first_s):
    built = {"trace": 0.01, "lower": 0.02, "load": 0.005, "first_call": first_s}
    found = harness.phases(
        frame(
            process(scenario="warm"),
            case(built, scenario="warm", protocol=protocol),
        )
    ).iloc[0]
    assert math.isnan(found["compile_s"])
    assert found["load_s"] == pytest.approx(0.005)
    assert found["execute_s"] == pytest.approx(0.005)
    assert found["missing"] == ""


def test_what_is_compiled_for_and_not_run_names_the_missing_execute():
    found = harness.phases(frame(process(target="gpu:h200"), case(BUILT, target="gpu:h200")))
    assert found["missing"].tolist() == ["execute"]
    assert found["total_s"].tolist() == pytest.approx([0.55 + 0.23])


def test_without_a_record_of_the_process_what_it_pays_is_missing():
    found = harness.phases(frame(case({**BUILT, "execute": 0.001})))
    assert found["missing"].tolist() == ["python, import, backend, first_lower, first_compile"]
    assert found["total_s"].tolist() == pytest.approx([0.231])


def test_a_case_takes_the_processes_of_its_own_environment():
    two, one = (to_raw({"devices": n}) for n in (2, 1))
    found = harness.phases(
        frame(
            process(environment=one, key="one"),
            process({**ONCE, "import": 9.0, "ready": 9.5}, n=2, environment=two, key="two"),
            case({**BUILT, "execute": 0.001}, environment=two),
        )
    )
    assert found["import_s"].tolist() == [9.0]


def test_cases_that_failed_have_no_row_and_hostile_names_stay_text():
    found = harness.phases(
        frame(
            process(),
            case({}, status="failed", reason="no", axes={"size": 1}),
            case(BUILT, workload=HOSTILE, axes={"total_s": "x", "size": [1, "a"]}),
        )
    )
    assert found["workload"].tolist() == [HOSTILE]
    assert found["axis_total_s"].tolist() == ["x"]
    assert found["size"].tolist() == [(1, "a")]


def test_the_committed_results_have_every_phase_where_the_machine_ran_them():
    found = harness.phases(everything("results"))
    assert len(found) > 50
    assert set(found[found["target"] == "cpu"]["missing"]) <= {"", "trace"}
    assert set(found[found["target"] != "cpu"]["missing"]) == {"execute"}
    shares = found[[f"{phase}_share" for phase in PHASES]].sum(axis=1)
    assert shares.tolist() == pytest.approx([1] * len(found))


def test_frames_that_were_put_together_give_what_each_gives():
    one, two = (
        frame(process(night=night), case({**BUILT, "execute": s}, night=night))
        for night, s in (("a", 0.1), ("b", 0.2))
    )
    found = harness.phases(pd.concat([one, two]))
    assert found["night"].tolist() == ["a", "b"]
    assert found["execute_s"].tolist() == pytest.approx([0.1, 0.2])
    assert found["missing"].tolist() == ["", ""]


# What the persistent cache saves

COLD = {"compile": [80e6], "first_call": [100e6]}
WARM = {"load": [4e6], "first_call": [25e6]}


def pair(axes, warm=WARM, **fields):
    """Return the records of a case that one process measured cold, and another warm."""
    return [
        record(
            0,
            stages,
            axes=axes,
            scenario=scenario,
            protocol=FIRST_CALL,
            # As in records: each scenario sets flags of its own.
            environment=to_raw({"flags": {"JAX_ENABLE_COMPILATION_CACHE": scenario}}),
            **{**fields, "entry_bytes": 12_000 if scenario == "cold" else 0},
        )
        for scenario, stages in (("cold", COLD), ("warm", warm))
    ]


def test_cold_and_warm_stand_in_one_row_per_case():
    given = frame_of(
        [
            *pair({"size": 8}),
            *pair({"size": "8"}),
            *pair({"shape": (1, 2)}),
        ]
    )
    found = harness.cache_effectiveness(given)

    assert found["size"].tolist()[:2] == [8, "8"]
    assert found["shape"].tolist()[2] == (1, 2)
    assert found["saved_s"].tolist() == pytest.approx([0.076] * 3)
    assert found["relative_warm"].tolist() == pytest.approx([0.25] * 3)
    assert found["entry_bytes"].tolist() == [12_000] * 3


def test_what_was_not_measured_is_nan_and_keeps_its_column():
    found = harness.cache_effectiveness(frame_of(pair({}, {"first_call": [25e6]})))

    assert found["relative_warm"].tolist() == [0.25]
    assert np.isnan(found[["load_s", "saved_s", "start_cold_s", "start_warm_s"]]).all(axis=None)


def test_without_both_there_is_no_row_but_every_column():
    whole = harness.cache_effectiveness(frame_of(pair({"size": 8})))
    for given in (frame_of(pair({"size": 8})[:1]), frame_of(pair({"size": 8})).iloc[:0]):
        found = harness.cache_effectiveness(given)
        assert found.empty
        assert list(found.columns) == list(whole.columns)
        assert found["saved_s"].dtype == float


def test_axes_that_are_called_like_its_columns_keep_their_values():
    found = harness.cache_effectiveness(frame_of(pair({"saved_s": 3})))

    assert found["axis_saved_s"].tolist() == [3]
    assert found["saved_s"].tolist() == pytest.approx([0.076])
