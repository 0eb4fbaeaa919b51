"""What a process records beside its times: how busy others were, and what its inputs were."""

import jax
import jax.numpy as jnp
import numpy as np

from harness import Workload, spec
from harness.frame.load import frame_of
from harness.measure import machine_load
from tests.sweeps import sweep


class Steps(Workload):
    """The number of iterations is a value of the inputs, and no part of the program."""

    targets = ("cpu",)
    steps = 10

    def inputs(self):
        return spec((8,)), np.int32(self.steps)

    @staticmethod
    def function(x, steps):
        return jax.lax.fori_loop(0, steps, lambda _, y: jnp.sin(y) + 1, x)


class TenTimes(Steps):
    steps = 100


class Calls(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def test_a_process_records_how_busy_others_were_and_what_its_inputs_were(tmp_path):
    frame = frame_of(sweep([Steps, TenTimes, Calls], tmp_path).records)
    rows = frame[frame["stage"] == "execute"].set_index("workload")
    few, many, calls = (
        rows.loc[f"measure.test_recorded.{one.__name__}"] for one in (Steps, TenTimes, Calls)
    )

    assert few["fingerprint"] == many["fingerprint"]
    assert few["inputs"] != many["inputs"]
    assert calls["inputs"] == "", "its inputs do not determine what it does"
    assert few["code"] == many["code"] != ""
    for others in few["others_cores"]:
        assert 0 <= others <= machine_load.cores()
    assert all(average > 0 for average in few["load_averages"])
    traced = frame[frame["stage"] == "trace"]
    assert traced["waiting_samples"].map(len).eq(traced["n_processes"]).all()
