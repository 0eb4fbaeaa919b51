"""Wall time beyond CPU time is judged as well: what waits is slower, whatever the processor did."""

import random

import pytest

from harness.frame.load import frame_of
from harness.records.schema import StageSamples, to_raw
from tests.verdicts.arms_of import records
from tests.verdicts.test_proof import CODE, Facts
from tests.verdicts.words import compare_arms


def arm(waiting_s, stage="trace", n=6, scatter_s=1e-3, others=0.1, average=1.0, cpu_s=0.02, seed=0):
    rng = random.Random(f"{seed}{waiting_s}")
    environment = to_raw({"jax": "0.10.2", "flags": {}, "host": {"cores": 2}})
    found = records(
        stages=(stage,), n=n, environment=environment, load_average=[average] * 3, code=CODE,
        others_cores=others, fingerprint="f1", facts=Facts(trace_calls=1000, lower_calls=500),
    )  # fmt: skip
    for one in found:
        cpu_ns = [1e9 * cpu_s * rng.lognormvariate(0, 0.02) for _ in range(2)]
        waits = [1e9 * (waiting_s + scatter_s * rng.random()) for _ in range(2)]
        wall = [a + b for a, b in zip(cpu_ns, waits, strict=True)]
        one.stages[stage] = StageSamples(wall, cpu_ns=cpu_ns)
    return frame_of(found)


def row_of(a, b, **options):
    frame = compare_arms(a, b, **options)
    return frame[frame["evidence"] != ""].iloc[0]


@pytest.mark.parametrize("stage", ["trace", "lower", "compile"])
def test_what_waits_longer_is_slower_though_its_cpu_time_is_the_same(stage):
    row = row_of(arm(0.0, stage), arm(0.2, stage))

    assert (row["verdict"], row["evidence"], row["clock"]) == ("slower", "waiting", "wall")
    assert row["reason"].startswith("waits 200 ms more (wall time beyond CPU time)")
    # What is shown is what decided.
    assert row["b_s"] == pytest.approx(0.22, rel=0.1)
    assert 1 < row["low"] < row["ratio"] < row["high"]
    assert row_of(arm(0.2, stage), arm(0.0, stage))["verdict"] == "faster"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({}, {"waiting_s": 0.004}),  # too little
        ({"cpu_s": 2.0}, {"cpu_s": 2.0, "waiting_s": 0.1}),  # too little of the stage
        ({}, {"waiting_s": 0.02, "scatter_s": 0.3}),  # hidden by its own scatter
    ],
)
def test_what_does_not_count_or_is_hidden_is_not_called(a, b):
    assert row_of(arm(**{"waiting_s": 0.0, **a}), arm(**b))["evidence"] != "waiting"


def test_a_machine_without_idle_time_makes_processes_wait_by_itself():
    a = arm(0.0)
    busy = {"others": 1.7, "average": 8.0}
    assert row_of(a, arm(0.06, **busy))[["verdict", "cause"]].tolist() == ["unsure", "load"]
    assert row_of(arm(0.0, **busy), arm(0.06, **busy))["cause"] == "load"
    # Four processes a core make what computes for 20 ms wait for about 80, not for 500.
    assert row_of(arm(0.0, **busy), arm(0.5, **busy))["evidence"] == "waiting"
    assert row_of(arm(0.0, **busy), arm(0.06, **busy), in_turns=True)["evidence"] == "waiting"


def test_one_round_in_turns_says_whether_waiting_must_be_looked_at_again():
    def first(waiting_s, **about):
        a = arm(0.0, "compile", n=1, **about)
        return row_of(a, arm(waiting_s, "compile", n=1, **about), in_turns=True)

    assert first(0.0)[["verdict", "needs"]].tolist() == ["same", ""]
    waits = first(0.1)[["verdict", "evidence", "needs"]]
    assert waits.tolist() == ["unsure", "waiting", "processes"]
    # On a busy machine that is nothing.
    assert first(0.06, others=1.7, average=8.0)["verdict"] == "same"
