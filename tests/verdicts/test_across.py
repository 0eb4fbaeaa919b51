"""Two machines, or unlike ones of one name: incomparable, unless that is asked for by name."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

import harness
from harness.errors import UsageError
from harness.frame.load import frame_of
from harness.records.schema import to_raw
from harness.records.store import Store, store_path
from harness.verdicts import compare_arms
from tests.verdicts.arms_of import records

SMALL = {"cpu": "Small", "cores": 2, "ram_bytes": 8 * 2**30}
LARGE = {"cpu": "Large", "cores": 64, "ram_bytes": 256 * 2**30}
DIFFERENCE = "a → b (processor Small → Large, cores 2 → 64, memory 8.0 → 256.0 GiB)"


def on(name="box", host=SMALL, device="cpu", factor=1.0, speed=1.0, **fields):
    """Return the records of a case that takes `factor` ms; `speed` is that of the machine."""
    scaled = {name: 1e6 / speed for name in ("trace", "lower", "compile", "loop")}
    about = to_raw({"jax": "0.10.2", "flags": {}, "host": host, "device": device})
    return records(factor, machine=name, environment=about, **{"reference_ns": scaled, **fields})


def row_of(a, b, stage="compile", **options):
    frame = compare_arms(frame_of(a), frame_of(b), **options)
    return frame[frame["stage"] == stage].iloc[0]


def test_two_machines_are_compared_in_raw_seconds_where_that_is_asked_for():
    a, b = on("a"), on("b", LARGE, factor=0.5, speed=2)
    plain, row = (row_of(a, b, on=["machine"], across=across) for across in (False, True))

    assert (plain["verdict"], plain["across"]) == ("incomparable", "")
    assert plain["reason"] == (
        f"unlike machines: {DIFFERENCE}. `--across machine` compares them all the same."
    )
    assert (row["verdict"], row["basis"], row["cause"]) == ("faster", "raw", "machine")
    assert row["ratio"] == pytest.approx(0.5, rel=0.05)
    assert row["calibrated_ratio"] == pytest.approx(1, rel=0.05)
    assert row["across"] == DIFFERENCE
    alike = row_of(a, on("b", LARGE, factor=0.5), on=["machine"], across=True)
    assert alike["calibrated_ratio"] == pytest.approx(0.5, rel=0.05)
    assert row["reason"].startswith("across machines; ")
    for program, said in (("f0", "the program is the same"), ("f1", "program: ")):
        one = on("a", stages=("execute",), fingerprint="f0")
        other = on("b", LARGE, factor=0.5, stages=("execute",), fingerprint=program)
        row = row_of(one, other, "execute", on=["machine"], across=True)
        assert (row["verdict"], row["reason"].endswith(said)) == ("faster", True)


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
    other = on(host=host, device=device, factor=2)
    row, across = row_of(on(), other), row_of(on(), other, across=True)

    assert row["verdict"] == "incomparable"
    assert f"two unlike machines called box ({said})" in row["reason"]
    assert "HARNESS_MACHINE, or --machine" in row["reason"]
    assert (across["verdict"], across["basis"]) == ("slower", "raw")


def test_alike_machines_of_one_name_are_compared_and_devices_that_differ_by_intention():
    for same in ({}, {**SMALL, "ram_bytes": 8.1 * 2**30}, {**SMALL, "system": "Linux 9"}):
        row = row_of(on(), on(host=same, factor=1.5))
        assert (row["verdict"], row["across"], row["basis"]) == ("slower", "", "raw")
    gpu, turned = on(device="NVIDIA H200", target="gpu", factor=2), on(device="other", factor=2)
    assert row_of(on(), gpu, on=["target"])["verdict"] == "slower"
    assert row_of(on(), turned, interleaved=True)["verdict"] == "slower"


def test_in_python_machines_are_compared_across_by_name():
    frame = frame_of([*on("a"), *on("b", LARGE, factor=2)])

    plain = harness.compare(frame, "machine=a", "machine=b")
    across = harness.compare(frame, "machine=a", "machine=b", across="machine")
    assert set(plain["verdict"]) == {"incomparable"}
    assert "slower" in set(across["verdict"])
    with pytest.raises(UsageError, match="Arm A has rows of the machines a, b: "):
        harness.compare(frame, "target=cpu", "machine=b", across="machine")
    with pytest.raises(UsageError, match="'env' is nothing to compare across: expected 'machine'"):
        harness.compare(frame, "machine=a", "machine=b", across="env")


def test_every_format_says_that_it_is_across_machines(compare, tmp_path):
    for one in (*on("a"), *on("b", LARGE, factor=2, speed=0.5)):
        Store(store_path(tmp_path, one.machine, one.commit, one.env)).append([one])
    arms = ("machine=a", "machine=b", "-r", tmp_path, "--across", "machine", "--stage", "compile")
    assert compare(*arms[:4])[0] == 4, "without being asked"
    code, out, _ = compare(*arms)
    assert code == 1
    assert out.splitlines()[1] == "A: machine=a · B: machine=b, ACROSS MACHINES"
    assert out.splitlines()[2] == f"Across machines: {DIFFERENCE}."
    assert re.search(r"raw, (1|1\.0\d*|0\.9\d*) calibrated", out)
    assert "a verdict is on machine and program together" in out
    out = compare(*arms, "--format", "markdown")[1]
    assert f"**Across machines: {DIFFERENCE}.**" in out
    out = compare(*arms, "--format", "csv")[1]
    assert [row["across"] for row in csv.DictReader(io.StringIO(out))] == [DIFFERENCE]
    document = json.loads(compare(*arms, "--format", "json")[1])
    assert (document["across_machines"], document["across"]) == (True, [DIFFERENCE])
    assert document["rows"][0]["across"] == DIFFERENCE
