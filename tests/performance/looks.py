"""False alarms of a live comparison that looks several times, on arms made of real processes.

    python -m tests.performance.looks TREE... [--arms 200] [--seed 1] [--limit 8]

TREE are as for `tests.performance.verdicts`. Their processes are permuted between two arms, those
of one round together, and judged as `harness compare --live` judges them: after 4 rounds, and after
every 4 more, at each look's share of the error; once more with the whole error at each look.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pandas as pd

from harness.verdicts.arms import Arm
from harness.verdicts.compare import comparison_between
from harness.verdicts.error_rates import rate
from harness.verdicts.live.comparison import open_rows
from harness.verdicts.live.rounds import next_look, share
from tests.performance.command import options
from tests.performance.verdicts import anonymous, arm, pooled


def judged(a: pd.DataFrame, b: pd.DataFrame, part: float) -> pd.DataFrame:
    """Return what one look says."""
    return comparison_between(Arm("A", a), Arm("B", b), interleaved=True, share=part).frame


def main() -> None:
    """Judge, and print the figures."""
    given = options(__doc__, select=True, arms=200, seed=1, limit=8)
    rng = random.Random(given.seed)
    pool = pooled([Path(one) for one in given.select])
    rounds = sorted(set(pool.rounds.values()))
    alarms = {True: Counter[str](), False: Counter[str]()}
    families: Counter[str] = Counter()
    closed: list[float] = []
    for _ in range(given.arms):
        rng.shuffle(rounds)
        ever: dict[bool, set[str]] = {True: set(), False: set()}
        looks: list[int] = []
        while not looks or looks[-1] < given.limit:
            looks.append(next_look(looks[-1] if looks else 0, given.limit))
            sides = (set(rounds[: looks[-1]]), set(rounds[given.limit :][: looks[-1]]))
            a, b = anonymous(*(arm(pool, side) for side in sides))
            for corrected, found in ever.items():
                frame = judged(a, b, share(looks, given.limit) if corrected else 1.0)
                called = frame["verdict"].isin(["slower", "faster"]) | frame["stage_verdict"].isin(
                    ["slower", "faster"]
                )
                found |= set(frame["stage"][called])
                if corrected and len(looks) == 1:
                    closed.append(1 - len(open_rows(frame)) / len(frame))
        families.update(set(frame["stage"]))
        for corrected, found in ever.items():
            alarms[corrected].update(found)
    for corrected, counted in alarms.items():
        one = rate(counted.total(), families.total())
        how = "each look at its share" if corrected else "each look at the whole error"
        stages = ", ".join(f"{stage} {n}" for stage, n in sorted(counted.items()))
        print(
            f"{how}: {one.count} of {one.of} families with an alarm at any look "
            f"({one.low:.1%} to {one.high:.1%}){': ' if stages else ''}{stages}"
        )
    print(f"rows closed at the first look: {sum(closed) / len(closed):.0%}")


if __name__ == "__main__":
    main()
