"""What Python's calls prove, and what they do not."""

import pytest

from harness.errors import ExitCode
from harness.program.facts import Facts
from harness.verdicts.table import exit_code_of
from tests.verdicts.arms_of import arm
from tests.verdicts.words import compare_arms

BOTH = ("trace", "lower")
PROOF = "proven by counts: 10,000 → {:,} Python calls ({:+.1f} %)"


def verdicts(b_trace, factor=1.0, n=8, spread=0.01, **b):
    """Return the rows of `trace` and `lower`; that of `lower` has equal counts."""
    a = arm(n=n, spread=spread, stages=BOTH, facts=Facts(trace_calls=10_000, lower_calls=900))
    facts = Facts(trace_calls=b_trace, lower_calls=900)
    b = arm(factor, n=n, spread=spread, stages=BOTH, facts=facts, seed=1, **b)
    return compare_arms(a, b).set_index("stage").loc[list(BOTH)]


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize(
    ("calls", "verdict"), [(11_300, "slower"), (8_700, "faster"), (10_300, "more"), (9_700, "less")]
)
def test_a_rise_of_calls_is_proven_by_one_process_and_so_is_a_fall(n, calls, verdict):
    trace, lower = verdicts(calls, n=n, spread=0.3).itertuples()

    assert (trace.verdict, trace.cause) == (verdict, "")
    assert trace.reason == PROOF.format(calls, calls / 100 - 100)
    assert lower.verdict == "unsure", "equal counts prove nothing"


def test_what_the_clock_shows_stands_and_the_counts_are_named():
    more, fewer = (verdicts(calls, factor=1.5).loc["trace"] for calls in (10_500, 9_500))

    assert more["verdict"] == fewer["verdict"] == "slower"
    assert more["reason"].endswith(PROOF.format(10_500, 5))
    assert fewer["reason"].endswith(", though 10,000 → 9,500 Python calls (-5.0 %)")


@pytest.mark.parametrize(
    ("calls", "b", "verdict"),
    [
        (10_049, {}, "same"),  # identical code differs by a few
        (None, {}, "same"),  # an old record knows none
        (12_000, {"python": "3.12.1"}, "same"),  # another interpreter counts differently
        (10_300, {"python": "3.11.9"}, "more"),
        (10_300, {"jax": "0.11.2"}, "same"),  # a call of another JAX takes another time
        (12_000, {"jax": "0.11.2"}, "slower"),
        (12_000, {"machine": "box", "jaxlib": "0.11.2"}, "slower"),
    ],
)
def test_what_proves_nothing_is_left_to_the_clock(calls, b, verdict):
    trace = verdicts(calls, **b).loc["trace"]

    assert trace["verdict"] == verdict
    if "jax" in b or "jaxlib" in b:
        assert (trace["cause"] == "environment") == (verdict == "slower")
        assert ("0.10.2 → 0.11.2" in trace["reason"]) == (verdict == "slower")


def test_more_calls_than_before_fail_a_job_only_where_they_count_in_the_time():
    codes = {calls: exit_code_of(verdicts(calls)) for calls in (10_300, 11_300)}

    assert codes == {10_300: ExitCode.FINE, 11_300: ExitCode.WORSE}


def test_a_few_calls_of_a_tiny_program_prove_nothing():
    facts = [Facts(lower_calls=calls) for calls in (900, 949, 950)]
    a, few, more = (arm(stages=("lower",), facts=one) for one in facts)
    judged = [compare_arms(a, b).set_index("stage").loc["lower", "verdict"] for b in (few, more)]

    assert judged == ["same", "more"]


def test_counts_must_rise_by_what_the_project_says_counts(monkeypatch):
    monkeypatch.setattr("harness.verdicts.counts.thresholds", {"trace": 0.1})
    assert verdicts(10_300).loc["trace"]["verdict"] == "same"
    assert verdicts(11_100).loc["trace"]["verdict"] == "slower"
