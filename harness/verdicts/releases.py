"""What each JAX release changed: every stage of a case beside the release before."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd
from packaging.version import InvalidVersion, Version

from harness.frame.cases import check
from harness.frame.typed import takes_frame
from harness.verdicts.error_rates import ErrorRates
from harness.verdicts.judge import compare_arms
from harness.verdicts.pairs import comparable_rows


@takes_frame
def releases(
    frame: pd.DataFrame, *, rates: ErrorRates | Sequence[ErrorRates] | None = None
) -> pd.DataFrame:
    """Return what changed from one JAX release to the next, a row per case, stage and release.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`. Where a machine measured a case
            several times with a release, the latest measurement counts.
        rates: what machines' own A/A measurements say, for the smallest effect that counts.

    Returns:
        `jax_a` and `jax_b`, two releases that follow each other among those that a machine
        measured, then the columns of :func:`harness.compare`: `a_s` and `b_s`, median seconds with
        each; `ratio` b / a with its interval; `verdict`, `reason` and what it rests on;
        `also_differs`, such as Python's version, to which a change may be due as well. No row where
        a machine measured one release only.

    Raises:
        UsageError: this is no frame of results.
    """
    check(frame, "harness.releases")
    rows = comparable_rows(frame[frame["jax"] != ""])
    parts = []
    for _, own in rows.groupby("machine", sort=False):
        for before, after in itertools.pairwise(sorted(own["jax"].unique(), key=_order)):
            arms = (own[own["jax"] == release] for release in (before, after))
            parts.append(_named(compare_arms(*arms, rates=rates, on=["jax"]), before, after))
    none = rows.head(0)
    return pd.concat(parts or [_named(compare_arms(none, none), "", "")], ignore_index=True)


def _named(compared: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    releases = pd.DataFrame({"jax_a": before, "jax_b": after}, compared.index, dtype="str")
    return releases.join(compared)


def _order(release: str) -> tuple[int, object]:
    """Return what to sort releases by; what is no version stands first."""
    try:
        return (1, Version(release))
    except InvalidVersion:
        return (0, release)
