"""Two machines, or unlike ones of one name, are incomparable."""

from __future__ import annotations

import pytest

import harness
from harness.frame.load import frame_of
from harness.records.schema import to_raw
from tests.verdicts.arms_of import records
from tests.verdicts.words import compare_arms

SMALL = {"cpu": "Small", "cores": 2, "ram_bytes": 8 * 2**30}
LARGE = {"cpu": "Large", "cores": 64, "ram_bytes": 256 * 2**30}
DIFFERENCE = "a → b (processor Small → Large, cores 2 → 64, memory 8.0 → 256.0 GiB)"


def on(name="box", host=SMALL, device="cpu", factor=1.0, **fields):
    """Return the records of a case that takes `factor` ms."""
    about = to_raw({"jax": "0.10.2", "flags": {}, "host": host, "device": device})
    return records(factor, machine=name, environment=about, **fields)


def row_of(a, b, stage="compile", **options):
    frame = compare_arms(frame_of(a), frame_of(b), **options)
    return frame[frame["stage"] == stage].iloc[0]


def test_two_machines_are_incomparable_and_the_reason_names_how_they_differ():
    frame = frame_of([*on("a"), *on("b", LARGE, factor=2)])
    rows = harness.compare(frame, "machine=a", "machine=b")
    assert set(rows["verdict"]) == {"incomparable"}
    assert {(row.problem, row.detail) for row in rows.itertuples()} == {("machines", DIFFERENCE)}


@pytest.mark.parametrize(
    ("host", "device", "said"),
    [
        ({**SMALL, "cpu": "Other"}, "cpu", "processor Small → Other"),
        ({**SMALL, "cores": 8}, "cpu", "cores 2 → 8"),
        ({**SMALL, "ram_bytes": 16 * 2**30}, "cpu", "memory 8.0 → 16.0 GiB"),
        (SMALL, "NVIDIA H200", "device cpu → NVIDIA H200"),
    ],
)
def test_unlike_machines_of_one_name_are_incomparable(host, device, said):
    row = row_of(on(), on(host=host, device=device, factor=2))

    assert row["verdict"] == "incomparable"
    assert f"two unlike machines called box ({said})" in row["reason"]
    assert row["reason"].endswith("HARNESS_MACHINE, or --machine.")


def test_alike_machines_of_one_name_are_compared_and_devices_that_differ_by_intention():
    for same in ({}, {**SMALL, "ram_bytes": 8.1 * 2**30}, {**SMALL, "system": "Linux 9"}):
        row = row_of(on(), on(host=same, factor=1.5))
        assert (row["verdict"], row["clock"]) == ("slower", "wall")
    gpu, turned = on(device="NVIDIA H200", target="gpu", factor=2), on(device="other", factor=2)
    assert row_of(on(), gpu, on=["target"])["verdict"] == "slower"
    assert row_of(on(), turned, in_turns=True)["verdict"] == "slower"
