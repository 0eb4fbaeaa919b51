"""Two machines, or unlike ones of one name: incomparable, unless that is asked for by name."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from harness.errors import UsageError
from harness.frame.load import frame_of
from harness.records.schema import to_raw
from harness.records.store import Store, store_path
from harness.verdicts import compare_arms
from harness.verdicts.compare import compare
from tests.verdicts.arms_of import records
from tests.verdicts.test_output import compare as command  # noqa: F401

SMALL = {"cpu": "Small", "cores": 2, "ram_bytes": 8 * 2**30}
LARGE = {"cpu": "Large", "cores": 64, "ram_bytes": 256 * 2**30}


def on(name="box", host=SMALL, device="cpu", factor=1.0, speed=1.0, **fields):
    """Return the records of a case that takes `factor` ms; `speed` is that of the machine."""
    scaled = {name: 1e6 / speed for name in ("trace", "lower", "compile", "loop")}
    about = to_raw({"jax": "0.10.2", "flags": {}, "host": host, "device": device})
    return records(factor, machine=name, environment=about, **{"reference_ns": scaled, **fields})


def verdicts(a, b, **options):
    frame = compare_arms(frame_of(a), frame_of(b), **options)
    return frame[frame["stage"] == "compile"].iloc[0]


def test_two_machines_are_incomparable_and_the_reason_names_the_remedy():
    row = verdicts(on("a"), on("b", LARGE), on=["machine"])

    assert (row["verdict"], row["across"]) == ("incomparable", "")
    assert row["reason"] == (
        "unlike machines: a → b (processor Small → Large, cores 2 → 64, memory 8.0 → 256.0 GiB). "
        "`--across machine` compares them all the same."
    )


def test_across_machines_raw_seconds_decide_and_the_calibrated_ratio_stands_beside():
    row = verdicts(on("a"), on("b", LARGE, factor=0.5, speed=2), on=["machine"], across=True)

    assert (row["verdict"], row["basis"], row["cause"]) == ("faster", "raw", "machine")
    assert row["ratio"] == pytest.approx(0.5, rel=0.05)
    assert row["calibrated_ratio"] == pytest.approx(1, rel=0.05)
    assert row["across"].startswith("a → b (processor Small → Large")
    assert row["reason"].startswith("across machines; ")


def test_an_equal_program_on_another_machine_may_be_faster():
    one, other = (
        on(name, host, factor=factor, stages=("execute",), fingerprint="f0")
        for name, host, factor in (("a", SMALL, 1.0), ("b", LARGE, 0.5))
    )
    frame = compare_arms(frame_of(one), frame_of(other), on=["machine"], across=True)
    row = frame[frame["stage"] == "execute"].iloc[0]

    assert row["verdict"] == "faster"
    assert row["reason"].endswith("the program is the same")


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
    row = verdicts(on(), on(host=host, device=device, factor=2))

    assert row["verdict"] == "incomparable"
    assert f"two unlike machines called box ({said})" in row["reason"]
    assert "HARNESS_MACHINE, or --machine" in row["reason"]
    across = verdicts(on(), on(host=host, device=device, factor=2), across=True)
    assert (across["verdict"], across["basis"]) == ("slower", "raw")


@pytest.mark.parametrize(
    "host", [SMALL, {**SMALL, "ram_bytes": 8.1 * 2**30}, {**SMALL, "system": "Linux 9"}, {}]
)
def test_alike_machines_of_one_name_are_compared(host):
    row = verdicts(on(), on(host=host, factor=1.5))

    assert (row["verdict"], row["across"], row["basis"]) == ("slower", "", "calibrated")


def test_other_targets_have_other_devices_by_intention():
    gpu = on(device="NVIDIA H200", target="gpu", factor=2)

    assert verdicts(on(), gpu, on=["target"])["verdict"] == "slower"


def test_arms_that_took_turns_are_of_one_machine():
    row = verdicts(on(device="cpu"), on(device="other", factor=2), interleaved=True)

    assert row["verdict"] == "slower"


def test_in_python_machines_are_compared_across_by_name():
    frame = frame_of([*on("a"), *on("b", LARGE, factor=2), *on("c", LARGE)])

    plain = compare(frame, "machine=a", "machine=b")
    found = compare(frame, "machine=a", "machine=b", across="machine")
    assert set(plain["verdict"]) == {"incomparable"}
    assert "slower" in set(found["verdict"])
    with pytest.raises(UsageError, match="Arm A has rows of the machines a, b, c"):
        compare(frame, "target=cpu", "machine=b", across="machine")
    with pytest.raises(UsageError, match="'env' is nothing to compare across: expected 'machine'"):
        compare(frame, "machine=a", "machine=b", across="env")


@pytest.fixture
def tree(tmp_path):
    """A results tree of two machines."""
    for one in (*on("a"), *on("b", LARGE, factor=2, speed=0.5)):
        Store(store_path(tmp_path, one.machine, one.commit, one.env)).append([one])
    return tmp_path


def test_without_being_asked_the_command_compares_no_machines(command, tree):  # noqa: F811
    code, out, _ = command("machine=a", "machine=b", "-r", tree)

    assert code == 4
    assert "`--across machine` compares them all the same." in " ".join(out.split())


def test_every_format_says_that_it_is_across_machines(command, tree):  # noqa: F811
    arms = ("machine=a", "machine=b", "-r", tree, "--across", "machine", "--stage", "compile")
    said = "a → b (processor Small → Large, cores 2 → 64, memory 8.0 → 256.0 GiB)"

    code, out, _ = command(*arms)
    assert code == 1
    assert out.splitlines()[0] == "A: machine=a · B: machine=b, ACROSS MACHINES"
    assert out.splitlines()[1] == f"Across machines: {said}."
    assert re.search(r"raw, (1|1\.0\d*|0\.9\d*) calibrated", out)
    assert "a verdict is on machine and program together" in out
    _, out, _ = command(*arms, "--format", "markdown")
    assert f"**Across machines: {said}.**" in out
    _, out, _ = command(*arms, "--format", "csv")
    assert [row["across"] for row in csv.DictReader(io.StringIO(out))] == [said]
    _, out, _ = command(*arms, "--format", "json")
    found = json.loads(out)
    assert (found["across_machines"], found["across"]) == (True, [said])
    assert found["rows"][0]["across"] == said


def test_wrong_usage_of_across_is_refused(command, tree):  # noqa: F811
    code, _, err = command("a", "b", "-r", tree, "--across", "env")
    assert (code, "'env' is not one of 'machine'" in err) == (2, True)
    code, _, err = command("a", "b", "-r", tree, "--across", "machine", "--live")
    assert (code, "leave --across out" in err) == (2, True)
