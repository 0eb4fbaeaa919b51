"""What the persistent cache saves, from frames."""

from __future__ import annotations

import numpy as np
import pytest

import harness
from harness.frame.load import frame_of
from harness.records.schema import FIRST_CALL, to_raw
from tests.frame.trees import record

COLD = {"compile": [80e6], "first_call": [100e6]}
WARM = {"load": [4e6], "first_call": [25e6]}


def case(axes, warm=WARM, **fields):
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
    frame = frame_of([*case({"size": 8}), *case({"size": "8"}), *case({"shape": (1, 2)})])
    found = harness.cache_effectiveness(frame)

    assert found["size"].tolist()[:2] == [8, "8"]
    assert found["shape"].tolist()[2] == (1, 2)
    assert found["saved_s"].tolist() == pytest.approx([0.076] * 3)
    assert found["relative_warm"].tolist() == pytest.approx([0.25] * 3)
    assert found["entry_bytes"].tolist() == [12_000] * 3


def test_what_was_not_measured_is_nan_and_keeps_its_column():
    found = harness.cache_effectiveness(frame_of(case({}, {"first_call": [25e6]})))

    assert found["relative_warm"].tolist() == [0.25]
    assert np.isnan(found[["load_s", "saved_s", "start_cold_s", "start_warm_s"]]).all(axis=None)


def test_without_both_there_is_no_row_but_every_column():
    whole = harness.cache_effectiveness(frame_of(case({"size": 8})))
    for frame in (frame_of(case({"size": 8})[:1]), frame_of(case({"size": 8})).iloc[:0]):
        found = harness.cache_effectiveness(frame)
        assert found.empty
        assert list(found.columns) == list(whole.columns)
        assert found["saved_s"].dtype == float


def test_axes_that_are_called_like_its_columns_keep_their_values():
    found = harness.cache_effectiveness(frame_of(case({"saved_s": 3})))

    assert found["axis_saved_s"].tolist() == [3]
    assert found["saved_s"].tolist() == pytest.approx([0.076])
