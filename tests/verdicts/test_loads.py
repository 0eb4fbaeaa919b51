"""The load of the machine is evidence: the clock decides nothing between arms that met unlike."""

import math

import pytest

from harness.frame.load import frame_of
from harness.program.facts import Facts
from harness.records.schema import to_raw
from harness.verdicts.loads import unlike
from harness.verdicts.verdict import Load
from tests.verdicts.arms_of import records
from tests.verdicts.words import compare_arms

NAN = math.nan


@pytest.mark.parametrize(
    ("a", "b", "is_unlike"),
    [
        ((2, 0.05, 1.0), (2, 0.20, 1.2), False),
        ((2, 0.05, 1.0), (2, 0.40, 1.2), True),
        ((64, 0.05, 1.0), (64, 2.0, 3.0), False),  # what an eighth is grows with the machine
        ((2, 0.10, 4.5), (2, 0.10, 1.0), False),  # a build just before, and nothing meanwhile
        ((2, 1.60, 3.9), (2, 1.70, 7.0), True),  # no idle time is left: the load average tells
        ((2, 1.75, 5.0), (2, 1.80, 6.0), False),
        ((2, 1.75, 9.0), (2, 1.80, 9.0), True),  # overloaded: what it was like nobody knows
        ((16, 14.0, 40.0), (16, 14.0, 50.0), False),
        ((2, NAN, 0.9), (2, NAN, 2.0), False),
        ((2, NAN, 0.9), (2, NAN, 3.0), True),
        ((2, NAN, NAN), (2, 1.7, 7.0), False),
    ],
)
def test_the_rule(a, b, is_unlike):
    assert unlike(Load(*a), Load(*b)) is unlike(Load(*b), Load(*a)) is is_unlike


def met(others, average, factor=1.0, **fields):
    """Return records of a machine of two cores that met a load; `others` may be one a process."""
    environment = to_raw({"jax": "0.10.2", "flags": {}, "host": {"cores": 2}})
    found = records(factor, environment=environment, load_average=[average] * 3, **fields)
    for number, one in enumerate(found):
        one.others_cores = others[number] if isinstance(others, list) else others
    return found


def verdicts(a, b, **options):
    frame = compare_arms(frame_of(a), frame_of(b), **options)
    return frame[frame["evidence"] != ""].iloc[0]


def test_arms_of_unlike_loads_are_not_called_by_the_clock():
    row = verdicts(met(0.1, 1.0), met(1.6, 6.0, 1.3))

    assert (row["verdict"], row["cause"]) == ("unsure", "load")
    assert "0.1 (A) and 1.6 (B) of 2 cores, load average 1.0 and 6.0" in row["reason"]
    assert "--live" in row["reason"]
    assert verdicts(met(0.1, 1.0), met(1.6, 6.0))["verdict"] == "unsure", "nor is it the same"
    assert verdicts(met(0.1, 1.0), met(0.1, 1.0, 1.3))["verdict"] == "slower"
    assert verdicts(met(1.6, 6.0), met(1.6, 6.0, 1.3))["verdict"] == "slower"
    # A load that changed within one side.
    assert verdicts(met(0.1, 1.0), met([0.1] * 4 + [1.6] * 4, 2.0, 1.3))["cause"] == "load"


def test_records_of_before_are_judged_by_their_load_average():
    assert verdicts(met(None, 3.9), met(None, 7.0, 1.3))["cause"] == "load"
    assert verdicts(met(None, 1.0), met(None, 1.6, 1.3))["verdict"] == "slower"


def test_what_took_turns_and_what_counts_prove_is_not_touched():
    a, b = met(0.1, 1.0), met(1.6, 6.0, 1.3)
    assert verdicts(a, b, in_turns=True)["verdict"] == "slower"

    p_of, arms = [], (met(1.6, 0.0), met(1.6, 0.0, 1.01))
    for average in (7.0, 9.0):
        for one in (*arms[0], *arms[1]):
            one.load_average = [average]
        assert (verdicts(*arms)["verdict"] == "unsure") is (average > 8)
        p_of.append(verdicts(*arms, in_turns=True)["p"])
    assert p_of[1] == pytest.approx(min(2 * p_of[0], 1)), (
        "half of the error at four processes a core"
    )

    traced = {"stages": ("trace",)}
    few = met(0.1, 1.0, facts=Facts(trace_calls=1000), **traced)
    many = met(1.6, 6.0, facts=Facts(trace_calls=1200), **traced)
    row = verdicts(few, many)
    assert (row["verdict"], row["reason"][:16]) == ("slower", "proven by counts")


def test_a_stage_as_a_whole_is_not_called_either():
    def arm(others, average, factor=1.0):
        return [
            one
            for size in range(4)
            for one in met(others, average, factor, axes={"size": size}, seed=size)
        ]

    frame = compare_arms(frame_of(arm(0.1, 1.0)), frame_of(arm(1.6, 6.0, 1.5)))
    assert {*frame["stage_verdict"]} <= {"unsure", ""}
    assert "unlike loads" in frame["stage_reason"].max()
    frame = compare_arms(frame_of(arm(0.1, 1.0)), frame_of(arm(0.1, 1.0, 1.5)))
    assert "slower" in set(frame["stage_verdict"])
