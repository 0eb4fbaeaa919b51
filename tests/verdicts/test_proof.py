"""What proves that nothing differs: then a clock that does is the machine's."""

import pandas as pd
import pytest

from harness.frame.load import frame_of
from harness.program.facts import Facts
from harness.verdicts.proof import Equal, equal
from tests.verdicts.arms_of import records
from tests.verdicts.words import compare_arms

CODE = {"./solver.py": "1111", "numpy==2.1.0": "2222"}
BUILDS = ("trace", "lower", "compile")
RUNS = ("execute", "compute", "dispatch", "in_flight")


def arm(factor=1.0, stages=BUILDS, **fields):
    facts = fields.pop("facts", Facts(trace_calls=1000, lower_calls=500))
    about = {"code": CODE, "fingerprint": "f1", "inputs": "i1", "facts": facts}
    return frame_of(records(factor, stages=stages, **{**about, **fields}))


def rows(a, b):
    frame = compare_arms(a, b)
    return frame[frame["evidence"] != ""].set_index("stage")


@pytest.mark.parametrize("n", [1, 8])
def test_same_code_versions_counts_and_program_take_the_same_cpu_time(n):
    found = rows(arm(n=n), arm(1.19, n=n, seed=3))

    assert found["verdict"].to_dict() == dict.fromkeys(BUILDS, "same")
    assert found["cause"].to_dict()["trace"] == "machine"
    assert "the machine differed by " in found.loc["trace", "reason"]
    assert not {*found["stage_verdict"]} & {"slower", "faster"}
    assert rows(arm(), arm(seed=3)).loc["trace", "cause"] == "", "it did not differ"


@pytest.mark.parametrize(
    "other",
    [
        {"code": {**CODE, "./solver.py": "3333"}},
        {"code": {}},
        {"fingerprint": "f2"},
        {"jax": "0.11.2"},
        {"facts": Facts(trace_calls=1000, lower_calls=560)},
    ],
    ids=lambda other: "".join(other),
)
def test_whatever_differs_or_is_not_recorded_leaves_it_to_the_clock(other):
    found = rows(arm(), arm(1.3, **other))
    assert found.loc["compile", "verdict"] == "slower"
    assert found.loc["trace", "verdict"] == "slower"


def test_what_the_clock_changed_one_way_although_nothing_is_known_to_differ_is_the_machine():
    """Python's calls were not counted, so nothing is proven; but the code that ran is the same."""
    found = rows(arm(facts=None), arm(1.3, facts=None))
    assert set(found["verdict"]) == {"unsure"}
    assert set(found["cause"]) == {"machine"}
    assert set(found["needs"]) == {"turns"}
    assert found["clock_ratio"].between(1.25, 1.35).all()
    in_turns = compare_arms(arm(facts=None), arm(1.3, facts=None), in_turns=True)
    assert "slower" in set(in_turns["verdict"]), "both sides met one machine"


def test_an_equal_module_compiles_in_the_same_time_whatever_code_made_it():
    counted = {"jaxpr_equations": 40, "stablehlo_operations": 90, "stablehlo_bytes": 4000}
    facts = Facts(trace_calls=1000, lower_calls=500, **counted)
    other = {"code": {"./solver.py": "3333"}, "facts": facts}
    found = rows(arm(facts=facts), arm(1.3, **other))
    assert found.loc["compile", ["verdict", "cause"]].tolist() == ["same", "machine"]
    assert found.loc["trace", "verdict"] == "slower"


@pytest.mark.parametrize("stage", RUNS)
def test_an_equal_program_with_equal_inputs_runs_the_same(stage):
    other = {"code": {"./solver.py": "3333"}}  # another text, the same program
    row = rows(arm(stages=(stage,)), arm(2.0, stages=(stage,), **other)).loc[stage]
    assert (row["verdict"], row["cause"]) == ("same", "machine")


def test_an_equal_program_whose_inputs_need_ten_times_the_iterations_is_no_proof():
    a, b = arm(stages=("execute",)), arm(10.0, stages=("execute",), inputs="i2")
    row = rows(a, b).loc["execute"]
    assert (row["verdict"], row["cause"]) == ("slower", "inputs")
    assert compare_arms(b, a).set_index("stage").loc["execute", "verdict"] == "faster"
    assert row["ratio"] == pytest.approx(10, rel=0.05)
    one, other = (frame[frame["stage"] == "execute"].iloc[0] for frame in (a, b))
    assert equal(one, other) is Equal.NOTHING
    assert equal(one, one) is Equal.CODE


def test_rows_that_are_proven_have_no_part_in_what_the_stage_did():
    def cases(factor, moved, **fields):
        every = [
            *(arm(factor, axes={"size": size}, seed=size) for size in range(4)),
            *(arm(moved, axes={"size": 10 + size}, seed=size, **fields) for size in range(4)),
        ]
        return pd.concat(every, ignore_index=True)

    frame = compare_arms(cases(1, 1), cases(1.5, 1, code={"./solver.py": "3333"}))
    compiled = frame[(frame["stage"] == "compile")].set_index("size")
    assert set(compiled["verdict"]) == {"same"}
    assert set(compiled["stage_verdict"]) == {"same"}
