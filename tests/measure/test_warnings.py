"""What a sweep says of a loaded machine and of compiles that take long."""

import subprocess
import sys
import time

import jax.numpy as jnp
import pandas as pd
import pytest

from harness import Workload, spec
from harness.frame.load import frame_of
from harness.measure import machine_load, state
from harness.measure.outcome import warn
from harness.output import tables
from tests.sweeps import sweep


class Long(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((16,))

    @staticmethod
    def function(x):
        for number in range(40):
            x = jnp.sort(jnp.sin(x) * number + x[::-1])
        return x


def test_a_compile_that_takes_long_is_told_while_it_runs_and_beside_the_table(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(state, "LONG_COMPILE_S", 0.2)
    said = []
    outcome = sweep([Long], tmp_path, on_progress=said.append)
    warned = [message.warning for message in said if message.stage == "compile"]
    assert set(warned) == {"", "has been compiling for more than 0.2 s"}
    assert len(warned) <= 2 * warned.count(""), "once of each"
    frame = frame_of(outcome.records)
    (line,) = tables.compile_texts(pd.concat([frame, frame.assign(scenario="cold")]), 5, 0.2)
    assert line.startswith("measure.test_warnings.Long: compile takes ")


def test_what_concerns_no_case_is_told_as_well():
    said = []
    warn(said.append)("removed a folder")
    (message,) = said
    assert (message.warning, message.workload, message.case) == ("removed a folder", "", "")


BURNT_S = 0.4
BURN = f"import time\nwhile time.process_time() < {BURNT_S}: pass"


def burnt(*before):
    """Spend CPU time in a process; return how much was taken for our own."""
    own_s = machine_load._own_s()
    subprocess.run([*before, sys.executable, "-c", BURN], check=True)
    time.sleep(3 * BURNT_S if before else 0)
    return machine_load._own_s() - own_s


def test_the_time_of_others_is_told_from_that_of_our_own_processes():
    others = machine_load.Others()
    assert burnt() > BURNT_S / 2
    assert burnt("setsid", "--fork") < BURNT_S / 2
    assert 0.05 < others.cores() < machine_load.cores()


@pytest.mark.parametrize(("share", "said"), [(0.01, False), (0.5, True)])
def test_a_share_that_counts_is_said(share, said):
    assert machine_load.disturbs(share * machine_load.cores()) is said


@pytest.mark.parametrize(("share", "said"), [(0.6, False), (0.9, True)])
def test_a_machine_that_was_loaded_before_is_said(share, said, monkeypatch):
    load = share * machine_load.cores()
    monkeypatch.setattr(machine_load.psutil, "getloadavg", lambda: (load, 0.0, 0.0))
    assert machine_load.load_before() == (load if said else 0.0)
