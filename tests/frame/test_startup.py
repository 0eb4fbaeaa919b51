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
from tests.frame.cases import case, frame
from tests.frame.trees import record

ONCE = {"import": 0.3, "backend": 0.1, "first_lower": 0.02, "first_compile": 0.03, "ready": 0.5}
BUILT = {"trace": 0.01, "lower": 0.02, "compile": 0.2}
RUN = {**BUILT, "execute": 0.001}


def process(stages=ONCE, **fields):
    return case(stages, workload="process", axes={}, version="1", **fields)


def test_the_phases_of_a_case_and_their_shares_sum_to_its_total():
    (row,) = harness.phases(frame(process(), case(RUN))).to_dict("records")
    assert (row["workload"], row["size"], row["missing"]) == ("family.Work", 8, "")
    expected = {"python": 0.1, **{k: v for k, v in ONCE.items() if k != "ready"}, **RUN}
    total = 0.5 + 0.05 + 0.23 + 0.001
    shares = {phase: expected.get(phase, math.nan) / total for phase in PHASES}
    found = {phase: row[f"{phase}_share"] for phase in PHASES}
    assert found == pytest.approx(shares, nan_ok=True)
    assert {phase: row[f"{phase}_s"] for phase in expected} == pytest.approx(expected)
    assert row["total_s"] == pytest.approx(total)


@pytest.mark.parametrize(("protocol", "first_s"), [(FIRST_CALL, 0.09), ("of old", 0.04)])
def test_a_warm_cache_has_load_for_compile_and_the_rest_of_the_first_call(protocol, first_s):
    built = {"trace": 0.01, "lower": 0.02, "load": 0.005, "first_call": first_s}
    warm = case(built, scenario="warm", protocol=protocol)
    (row,) = harness.phases(frame(process(scenario="warm"), warm)).to_dict("records")
    expected = {"compile_s": math.nan, "load_s": 0.005, "execute_s": 0.005, "missing": ""}
    assert {name: row[name] for name in expected} == pytest.approx(expected, nan_ok=True)


GPU = {"target": "gpu:h200"}


@pytest.mark.parametrize(
    ("cases", "missing", "total_s"),
    [
        ([process(**GPU), case(BUILT, **GPU)], "execute", 0.55 + 0.23),
        ([case(RUN)], "python, import, backend, first_lower, first_compile", 0.231),
    ],
)
def test_what_did_not_happen_or_has_no_record_is_named(cases, missing, total_s):
    found = harness.phases(frame(*cases))
    assert found["missing"].tolist() == [missing]
    assert found["total_s"].tolist() == pytest.approx([total_s])


def test_a_case_takes_the_processes_of_its_own_environment():
    two, one = (to_raw({"devices": n}) for n in (2, 1))
    slower = process(ONCE | {"import": 9.0, "ready": 9.5}, n=2, environment=two, key="two")
    given = frame(process(environment=one, key="one"), slower, case(RUN, environment=two))
    assert harness.phases(given)["import_s"].tolist() == [9.0]


def test_the_committed_results_have_every_phase_where_the_machine_ran_them():
    found = harness.phases(everything("docs/example-results"))
    assert len(found) > 50
    on_cpu = found["target"] == "cpu"
    assert set(found[on_cpu]["missing"]) <= {"", "trace"}
    assert set(found[~on_cpu]["missing"]) == {"execute"}


def test_frames_that_were_put_together_give_what_each_gives():
    frames = (
        frame(process(night=night), case({**BUILT, "execute": s}, night=night))
        for night, s in (("a", 0.1), ("b", 0.2))
    )
    found = harness.phases(pd.concat(frames))
    assert found["execute_s"].tolist() == pytest.approx([0.1, 0.2])
    assert found[["night", "missing"]].to_numpy().tolist() == [["a", ""], ["b", ""]]


# What the persistent cache saves

COLD = {"compile": [80e6], "first_call": [100e6]}
WARM = {"load": [4e6], "first_call": [25e6]}


def pair(axes, warm=WARM):
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
            entry_bytes=12_000 if scenario == "cold" else 0,
        )
        for scenario, stages in (("cold", COLD), ("warm", warm))
    ]


def test_cold_and_warm_stand_in_one_row_per_case():
    axes = ({"size": 8}, {"size": "8"}, {"shape": (1, 2)})
    found = harness.cache_effectiveness(frame_of(one for own in axes for one in pair(own)))

    assert found["size"].tolist()[:2] == [8, "8"]
    assert found["shape"].tolist()[2] == (1, 2)
    numbers = found[["saved_s", "relative_warm", "entry_bytes"]].to_numpy().tolist()
    assert numbers == [pytest.approx([0.076, 0.25, 12_000])] * 3


def test_what_was_not_measured_is_nan_and_without_both_there_is_no_row():
    found = harness.cache_effectiveness(frame_of(pair({}, {"first_call": [25e6]})))
    assert found["relative_warm"].tolist() == [0.25]
    assert np.isnan(found[["load_s", "saved_s", "start_cold_s", "start_warm_s"]]).all(axis=None)
    none = harness.cache_effectiveness(frame_of(pair({"size": 8})[:1]))
    assert (none.empty, none["saved_s"].dtype) == (True, float)
