"""What a point counts in asv's step detection: less, the wider its interval is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from harness.stages.sampling import median_interval_ranks

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]


def weights(found: pd.DataFrame) -> Floats:
    """Return a weight for each of :func:`harness.verdicts.history.points.points`.

    1 / (width + the piece's median width) of the points' intervals. asv's own pages weigh with
    1 / width; but the median of a night also differs from night to night, and its interval is
    itself uncertain, so no point counts more than twice as much as the usual one. The interval is
    that of what is judged, so where that is calibrated, of the calibrated samples. NaN, which
    stands for the median of the others, where there is none: under 6 processes.
    """
    widths = (found["high"] - found["low"]).to_numpy(float, copy=True)
    calibrated = np.flatnonzero(found["basis"] == "calibrated")
    samples = found["calibrated_samples"].to_numpy()
    counts = np.array([_count(samples[row]) for row in calibrated], np.int64)
    for n in np.unique(counts):
        rows = calibrated[counts == n]
        ranks = median_interval_ranks(int(n))
        if ranks is None:
            widths[rows] = np.nan
            continue
        ordered = np.sort(np.array([samples[row] for row in rows], float))
        widths[rows] = ordered[:, ranks[1]] - ordered[:, ranks[0]]
    # The scale is left out: within a piece it is one, and only ratios of weights count.
    widths[~(widths >= 0)] = np.nan
    usual = pd.Series(widths).groupby([found["series"], found["piece"]]).transform("median")
    both: Floats = widths + usual.to_numpy(float)
    both[both == 0] = np.nan
    return np.reciprocal(both)


def _count(samples: Any) -> int:
    return len(samples) if isinstance(samples, list | tuple | np.ndarray) else 0
