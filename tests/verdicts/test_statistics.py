"""Which ratios count, at the very edge of what counts."""

import numpy as np
import pytest

from harness.frame.load import frame_of
from harness.verdicts.statistics import adjust, counting, estimates, p_of_share, rises
from tests.verdicts.arms_of import records
from tests.verdicts.words import compare_arms


def test_a_ratio_of_just_the_effect_counts_in_both_directions():
    effect = np.full(5, 0.1)
    ratios = np.array([1 + 0.1, 1 / (1 + 0.1), 1.0999, 0.9092, np.nan])
    assert counting(ratios, effect).tolist() == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("wall", "cpu", "verdict"), [(1.3, 1.0, "same"), (1.0, 1.3, "slower"), (1.3, None, "slower")]
)
def test_compiles_are_judged_on_the_clock_of_the_processor_where_both_know_it(wall, cpu, verdict):
    arms = [records(), records(wall)]
    for arm, factor in zip(arms, (1.0, cpu), strict=True):
        for one in arm:
            taken = one.stages["compile"]
            least = min(taken.samples_ns) / (1 if arm is arms[0] else wall)
            taken.cpu_ns = [least * factor] if factor else []
    (row,) = compare_arms(*map(frame_of, arms)).to_dict("records")
    assert row["verdict"] == verdict


def test_what_pairs_share_is_no_scatter_of_theirs():
    """Drift of 4 % from pair to pair, 1 % of their own: +8 % is found by pairs only."""
    rng = np.random.default_rng(3)
    drift = rng.normal(0, 0.04, (400, 8))
    a, b = drift + rng.normal(0, 0.01, (2, 400, 8))
    unpaired, pairs = (estimates(a, b + np.log(1.08), paired=by) for by in (False, True))
    assert (pairs.p < 0.001).mean() > 0.95 > 0.8 > (unpaired.p < 0.001).mean()
    assert 0.02 < (estimates(a, b, paired=True).p < 0.05).mean() < 0.08
    assert pairs.ratio.tolist() == pytest.approx(unpaired.ratio.tolist())


def test_rows_of_one_stage_lend_each_other_what_they_know_of_their_spread():
    """Four processes a side: a change of 5 sigma is found more often, and no more is made up."""
    a, b = np.random.default_rng(9).normal(0, 0.02, (2, 1000, 4))
    together = estimates(a, b + 0.06)
    alone = [float(estimates(x[None], y[None]).p[0]) for x, y in zip(a, b + 0.06, strict=True)]
    assert (together.p < 0.001).mean() > 2 * (np.array(alone) < 0.001).mean()
    whole, quarter = (estimates(a, b, share=share) for share in (1, 0.25))
    assert 0.03 < (whole.p < 0.05).mean() < 0.07
    # A look that may err less has wider intervals, and a larger p.
    assert quarter.p == pytest.approx(np.minimum(4 * whole.p, 1))
    low, high = zip(quarter.interval(), whole.interval(), strict=True)
    assert (low[0] < low[1]).all()
    assert (high[0] > high[1]).all()
    a = np.array([[0.0] * 3, [0.0] * 3, [0.0, np.nan, np.nan], [np.nan] * 3])
    found = estimates(a, a + np.array([[0.0], [1.0], [1.0], [0.0]]))
    assert found.p[:2].tolist() == [1.0, 0.0], "without spread"
    assert np.isnan(found.p[2:]).all(), "without values"
    assert found.ratio[2] == pytest.approx(np.e)


def test_a_rise_in_seconds_is_large_against_its_own_scatter():
    quiet, loud = np.array([[-2e-3, 0.0, 1e-3, 2e-3]]), np.array([[0.0, 0.05, 0.3, 0.1]])
    rise, p = rises(quiet, quiet + 0.2)
    assert (rise[0], p[0] < 1e-6) == (pytest.approx(0.2), True)
    assert rises(quiet, loud)[0].tolist() == [0.0], "its own scatter hides it"
    # What pairs share is no scatter.
    assert rises(loud, loud + 0.2, paired=True)[0].tolist() == pytest.approx([0.2])
    rise, p = rises(np.array([[0.0, np.nan]]), np.array([[1.0, 1.0]]))
    assert np.isnan(p).all(), "too few processes"


def test_a_share_of_processes_is_rare_where_elsewhere_there_is_none():
    assert p_of_share(3, 8, 0, 88) < 0.001
    assert p_of_share(3, 8, 9, 24) > 0.3
    assert p_of_share(1, 8, 0, 8) > 0.3


def test_the_step_up_and_the_tails_are_those_of_scipy():
    from scipy import stats

    p = np.random.default_rng(2).uniform(0, 0.2, 50)
    assert adjust(p, np.ones(50, bool)) == pytest.approx(stats.false_discovery_control(p))
    for count, of, elsewhere, of_elsewhere in ((3, 8, 1, 80), (1, 5, 0, 7), (5, 6, 2, 30)):
        expected = stats.binom.sf(count - 1, of, (elsewhere + 0.5) / (of_elsewhere + 1))
        assert p_of_share(count, of, elsewhere, of_elsewhere) == pytest.approx(expected)
    a, b = np.random.default_rng(3).normal(0, 0.1, (2, 1, 6))
    found, expected = estimates(a, b), stats.ttest_ind(b[0], a[0])
    assert found.p[0] == pytest.approx(expected.pvalue)
    ends = np.exp(expected.confidence_interval(0.95))
    assert np.ravel(found.interval()) == pytest.approx(np.array(ends))
