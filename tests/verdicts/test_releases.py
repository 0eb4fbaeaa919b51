from __future__ import annotations

import pytest

import harness
from harness.errors import UsageError
from harness.records.schema import to_raw
from harness.verdicts.judge import compare_arms
from harness.verdicts.pairs import environment_lines
from tests.frame.cases import HOSTILE, case, frame

RELEASES = ("0.9.2", "0.10.2", "0.12.0.1")


def measured(jax, seconds, **fields):
    scattered = [seconds * (1 + 0.001 * process) for process in range(8)]
    return case({"compile": scattered}, 8, **{"jax": jax, "env": f"jax{jax}", **fields})


def test_each_release_stands_beside_the_one_before_it():
    found = harness.releases(
        frame(*(measured(jax, s) for jax, s in zip(RELEASES, (0.1, 0.2, 0.1), strict=True)))
    )
    assert found.index.tolist() == [0, 1]
    assert found["jax_a"].tolist() == ["0.9.2", "0.10.2"]  # by version, not by text
    assert found["jax_b"].tolist() == ["0.10.2", "0.12.0.1"]
    assert found["b_s"].tolist() == pytest.approx([0.2, 0.1], rel=0.01)
    assert found["ratio"].tolist() == pytest.approx([2, 0.5], rel=0.01)
    assert {"verdict", "reason", "low", "high"} <= set(found.columns)


def test_what_else_differs_is_said_beside_every_ratio():
    def of(jax, python):
        about = to_raw({"jax": jax, "python": python, "flags": {}, "about": "two\nlines" + jax})
        return measured(jax, 0.1, python=python, environment=about)

    rows = frame(of("0.10.2", "3.11.7"), of("0.12.0.1", "3.12.1"))
    said = "python 3.11.7 → 3.12.1, about two lines0.10.2 → two lines0.12.0.1, flags equal"
    for found in (
        harness.releases(rows),
        harness.compare(rows, "jax=0.10.2", "jax=0.12.0.1"),
    ):
        assert found["also_differs"].tolist() == [said]
    assert environment_lines(found) == [f"From A to B: {said}."]
    arms = (rows[rows["jax"] == jax] for jax in ("0.10.2", "0.12.0.1"))
    assert "jax 0.10.2 → 0.12.0.1" in compare_arms(*arms)["also_differs"][0]


def test_machines_are_compared_with_themselves_only_and_one_release_with_none():
    one = frame(measured("0.9.2", 0.1, machine="one"))
    rows = frame(
        measured("0.9.2", 0.1, machine="one"),
        measured("0.10.2", 0.1, machine="one", workload=HOSTILE),
        measured("0.10.2", 0.1, machine="two"),
    )
    found = harness.releases(rows)
    assert set(found["machine"]) == {"one"}
    assert HOSTILE in set(found["workload"])
    for few in (one, one.head(0)):
        none = harness.releases(few)
        assert none.empty
        assert [*none.columns.drop("size", errors="ignore")] == [*found.columns.drop("size")]
    with pytest.raises(UsageError, match=r"harness\.releases got a dict, expected a frame"):
        harness.releases({})
