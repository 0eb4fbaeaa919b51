"""What the report on results is about: the frame, its cases, what is newest, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from harness.frame.frame import ORIGIN, PLACE
from harness.output.report.cases import (
    full_case_texts,
    one_case,
    origin_labels,
    origins,
    with_cases,
)
from harness.output.verdicts import environment_lines, with_reasons
from harness.verdicts.error_rates import ErrorRates
from harness.verdicts.history import history, series
from harness.verdicts.judge import judged_arms
from harness.verdicts.table import COLUMNS, WORDS, table
from harness.verdicts.verdict import KINDS


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured, for the sections to read. Each frame is made once."""

    frame: pd.DataFrame
    """Of :func:`harness.load`."""
    comparisons: pd.DataFrame
    """Of :func:`harness.against_baseline`."""
    rates: Sequence[ErrorRates] = ()
    """What the machines' own A/A measurements say."""
    compile_times: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Of :func:`harness.compile_times`."""

    @cached_property
    def cases(self) -> pd.DataFrame:
        """Ordinary rows in seconds, with columns `case` (text) and `case_number`."""
        return with_cases(self.frame)

    @cached_property
    def newest(self) -> pd.DataFrame:
        """The newest row of each case and stage: of the newest commit, and there the last."""
        two = self.last_two
        return self.cases.loc[two.index[two["time"] == "last"]]

    @cached_property
    def last_two(self) -> pd.DataFrame:
        """The newest row of each case and stage, and the one before, in the frame's order.

        `time` says which: `last` or `before`; `label` is the night or else the date, and the
        commit.
        """
        cases = self.cases
        date = cases["commit_date"].fillna(cases["started_at"])
        ordered = cases.assign(date=date).sort_values(
            ["date", "started_at"], na_position="first", kind="stable"
        )
        back = ordered.groupby(["case_number", "stage"], sort=False).cumcount(ascending=False)
        two = cases.loc[cases.index.intersection(back.index[back < 2], sort=False)]
        return two.assign(
            time=back.reindex(two.index).map({0: "last", 1: "before"}),
            label=origin_labels(two["night"], two["started_at"], two["commit"]),
        )

    @cached_property
    def ok(self) -> pd.DataFrame:
        """The newest rows that were measured with success."""
        return self.newest[self.newest["status"] == "ok"]

    @cached_property
    def points(self) -> pd.DataFrame:
        """The points of all series that have several."""
        points = series(self.frame[self.frame["unit"] == "seconds"])
        points = points[points["value"].notna()]
        return points[points.groupby("series")["position"].transform("size") > 1]

    @cached_property
    def changes(self) -> pd.DataFrame:
        """The change points of the history."""
        return history(self.frame[self.frame["unit"] == "seconds"])

    @cached_property
    def compared(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Verdicts on each machine's newest origin, and in words what was compared.

        It is the newest that has one of the same effort before it. The other side is the one
        before it with the same environment and effort, or else of the same effort. Rows that need
        a look stand first.
        """
        parts, captions = [], []
        timed = self.frame[self.frame["unit"] == "seconds"]
        for machine, own in origins(self.cases).groupby("machine", sort=False):
            again = np.flatnonzero(own.duplicated("effort"))
            if not again.size:
                continue
            new, older = own.iloc[again[-1]], own.iloc[: again[-1]]
            older = older[older["effort"] == new["effort"]]
            alike = older[(older[PLACE] == new[PLACE]).all(axis=1)]
            old = (older if alike.empty else alike).iloc[-1]
            before, after = (
                timed[(timed[ORIGIN] == origin[ORIGIN]).all(axis=1)] for origin in (old, new)
            )
            rates = list(self.rates) or None
            on = ["commit", "effort"]
            pairs, judged = judged_arms(before, after, rates, on=on)
            parts.append(with_reasons(table(pairs, judged), judged, pairs.pairs))
            names = [f"{one['label'].strip()} ({one['env']})" for one in (new, old)]
            differs = environment_lines(parts[-1], "before to now")
            captions.append(" ".join([f"{machine}: {names[0]} against {names[1]}.", *differs]))
        if not parts:
            return pd.DataFrame(columns=[*COLUMNS, *WORDS, "case", "one_case", "change"]), ()
        verdicts = pd.concat(parts, ignore_index=True)
        verdicts = verdicts.assign(
            case=full_case_texts(verdicts, [*COLUMNS, *WORDS]),
            one_case=one_case(verdicts, [*COLUMNS, *WORDS]),
            change=verdicts["verdict"],
            rank=verdicts["verdict"].map(KINDS.index),
        )
        verdicts = verdicts.sort_values(
            ["rank", "ratio"], ascending=[True, False], kind="stable", ignore_index=True
        )
        return verdicts, tuple(captions)
