"""What else differs between two releases of JAX is beside every ratio."""

from __future__ import annotations

import harness
from harness.output.verdicts import environment_lines
from harness.records.schema import to_raw
from tests.frame.cases import case, frame
from tests.verdicts.words import compare_arms


def measured(jax, seconds, **fields):
    scattered = [seconds * (1 + 0.001 * process) for process in range(8)]
    return case({"compile": scattered}, 8, **{"jax": jax, "env": f"jax{jax}", **fields})


def test_what_else_differs_is_said_beside_every_ratio():
    def of(jax, python):
        about = to_raw({"jax": jax, "python": python, "flags": {}, "about": "two\nlines" + jax})
        return measured(jax, 0.1, python=python, environment=about)

    rows = frame(of("0.10.2", "3.11.7"), of("0.12.0.1", "3.12.1"))
    said = "python 3.11.7 → 3.12.1, about two lines0.10.2 → two lines0.12.0.1, flags equal"
    found = harness.compare(rows, "jax=0.10.2", "jax=0.12.0.1")
    assert found["also_differs"].tolist() == [said]
    assert environment_lines(found) == [f"From A to B: {said}."]
    arms = (rows[rows["jax"] == jax] for jax in ("0.10.2", "0.12.0.1"))
    assert "jax 0.10.2 → 0.12.0.1" in compare_arms(*arms)["also_differs"][0]
