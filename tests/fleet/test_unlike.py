"""Unlike workers of one machine: its CPU, and a TPU that is compiled for and not there."""

import pytest

from tests.fleet.processes import measuring
from tests.targets.test_compile_only import needs

pytestmark = [pytest.mark.slow, needs("tpu:v5e")]


def test_both_are_measured_in_one_sweep_and_never_at_the_same_time(fleet):
    fleet.worker("alpha", "cpu=1")
    fleet.worker("tpus", "tpu:v5e=1", HARNESS_MACHINE="alpha")
    fleet.wait_for("alpha", "tpus")
    client = fleet.client(
        "small.Scale", "--target", "cpu", "--target", "tpu:v5e", "--effort", "2x1"
    )
    most = 0
    while client.poll() is None:
        most = max(most, len(measuring(fleet.spool)))
    out, err = client.communicate()
    assert client.returncode == 0, err
    assert most == 1
    assert "8 measured" in out
    assert "1 machine(s): alpha" in out
    found = fleet.records()
    assert {(r.target, r.status) for r in found} == {("cpu", "ok"), ("tpu:v5e", "ok")}
    assert len(found) == 8
    assert all("execute" in r.stages for r in found if r.target == "cpu")
