from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from harness.errors import UsageError
from harness.stages.sampling import EFFORTS, effort, is_narrow, median_interval_ranks, visits

# --- efforts --------------------------------------------------------------------------------------


def test_only_thorough_adds_processes():
    assert [name for name in EFFORTS if effort(name).adaptive] == ["thorough"]
    assert effort("quick").processes == 1


@given(st.integers(1, 9999), st.integers(1, 9999))
def test_an_effort_may_be_written_as_processes_and_passes(processes, passes):
    found = effort(f"{processes}x{passes}")
    assert (found.processes, found.passes, found.limit) == (processes, passes, processes)
    assert not found.adaptive


@pytest.mark.parametrize(
    "text", ["", "fast", "0x1", "1x0", "x", "6x", "x1", "-1x1", "1.5x1", "6 x 1", "6X1", "10000x1"]
)
def test_an_unknown_effort_names_those_there_are(text):
    said = (
        rf"No effort is called '{text}'\..* There are: quick, default, thorough, or PROCESSESxPASS"
    )
    with pytest.raises(UsageError, match=said):
        effort(text)


def test_the_protocol_depends_on_what_one_process_does_alone():
    assert effort("default").protocol == effort("thorough").protocol == effort("20x1").protocol
    assert effort("8x2").protocol != effort("8x3").protocol


# --- the order of visits --------------------------------------------------------------------------

CASES = st.lists(st.integers(-1, 50), unique=True, max_size=12)


@given(CASES, st.integers(0, 5), st.integers())
def test_every_case_is_visited_once_in_every_pass_and_the_order_comes_again(cases, passes, seed):
    before = list(cases)
    order = visits(cases, passes, seed)
    assert cases == before
    assert order == visits(cases, passes, seed)
    expected = [(number, case) for number in range(passes) for case in sorted(cases)]
    assert [number for number, _ in order] == [number for number, _ in expected]
    assert sorted(order) == expected


def test_the_order_differs_between_seeds_and_passes():
    cases = range(8)
    orders = [visits(cases, 2, seed) for seed in range(20)]
    assert len({tuple(order) for order in orders}) == 20
    assert all([c for _, c in order[:8]] != [c for _, c in order[8:]] for order in orders)


# --- when to stop ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "ranks"),
    # The ranks of a table of 95 % intervals of the median, counted from 0.
    [(0, None), (5, None), (6, (0, 5)), (8, (0, 7)), (9, (1, 7)), (10, (1, 8)), (12, (2, 9))],
)
def test_the_interval_of_the_median_is_that_of_the_tables(n, ranks):
    assert median_interval_ranks(n) == ranks


@given(st.integers(1, 300), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_interval_covers_the_median_and_no_narrower_one_would(n, level):
    def coverage(k):
        return 1 - 2 * binom.cdf(k, n, 0.5)

    ranks = median_interval_ranks(n, level)
    if ranks is None:
        assert coverage(0) < level
    else:
        low, high = ranks
        assert high == n - 1 - low
        assert coverage(low) >= level
        assert coverage(low + 1) < level


def test_a_median_is_narrow_when_half_its_interval_is_a_small_part_of_it():
    assert not is_narrow([])
    assert is_narrow([100, 101, 102, 103, 104, 105])
    assert not is_narrow([100, 101, 102, 103, 104])  # too few for an interval
    assert not is_narrow([80, 101, 102, 103, 104, 120])
    assert is_narrow([80, 101, 102, 103, 104, 120], share=0.2)
