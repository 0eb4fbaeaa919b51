"""Verdicts held against arms that are made of real processes, in which the truth is known.

    python -m tools.performance.verdicts TREE... [--arms 24] [--seed 1] [--save FILE] [--looks N]
    python -m tools.performance.verdicts TREE... --classes 100

TREE are results trees or record files of identical code: `results/MACHINE/aa/records/RUN/*` after
`harness aa`. Their processes are permuted between two arms, those of one round together, because
they share what the machine did then. Each pair of arms is judged by what `harness compare` calls:
as it is (false alarms), with 5, 10 or 20 % more time in a tenth of the rows, drawn anew for each
pair (power; --save writes it as CSV and SVG), and with planted changes, which must be told. With
several TREE, each is held against the next as well, as it was measured.

With --classes 100 so many pairs of equal arms of eight processes are drawn in each class: both of
one tree (like load), one of each of two (unlike load), and one of a tree against one that has half
of its processes of another (load that changes within a side). TREE are then measured at loads of
their own, 16 processes a case or more. Each is judged with proof, without it, and as pairs.

With --looks 8 the arms are of eight rounds at most and are judged as `harness compare --live` does
instead: after 4 rounds, and after every 4 more, at each look's share of the error; once more with
the whole error at each look.
"""

import itertools
import json
import random
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import msgspec
import numpy as np
import pandas as pd

from harness.frame.columns import COLUMNS, LISTS, NUMBERS
from harness.frame.frame import INSTRUMENTS
from harness.frame.load import frame_of, record_files_of
from harness.frame.pairs import Arm, pair
from harness.output import comparison as summary
from harness.records.schema import Problems, digest, read_file
from harness.stages.registry import STAGES
from harness.verdicts.aa.rates import anonymous
from harness.verdicts.compare import judged_pairs
from harness.verdicts.error_rates import rate
from harness.verdicts.judge import Terms
from harness.verdicts.live.comparison import open_rows
from harness.verdicts.live.rounds import next_look, share
from harness.verdicts.table import exit_code_of
from harness.verdicts.verdict import MOVED
from tools.performance.command import options

EFFECTS = (0.05, 0.10, 0.20)
SHARE = 0.1
"""Of the rows, how many are slowed down at once."""

Round = tuple[int, str]
"""The tree, and the number of the processes in it."""


class Pool(NamedTuple):
    """All processes of all trees, in one row per case and stage."""

    frame: pd.DataFrame
    rounds: dict[str, Round]
    """Of each process."""
    loads: list[float]
    """The machine's load when each process of the first workload began."""


def pooled(trees: list[Path]) -> Pool:
    """Return the processes of trees of identical code, whatever commit they name."""
    records: list[Any] = []
    rounds: dict[str, Round] = {}
    loads: dict[Round, float] = {}
    files = [(number, file) for number, tree in enumerate(trees) for file in record_files_of(tree)]
    for number, file in files:
        for record in read_file(file, Problems()):
            if record.scenario != "off" or record.comparison is not None:
                continue
            process = record.process or f"{number} {record.replicate}"
            rounds[process] = number, record.replicate.rpartition("#")[2]
            loads.setdefault(rounds[process], (record.load_average or [np.nan])[0])
            case = (record.workload, record.axes, record.transform, record.target)
            changed: dict[str, Any] = {
                "key": digest(*case, record.precision, record.protocol),
                "replicate": f"{number} {record.replicate}",
                "process": process,
                **{"commit": "", "dirty": "", "effort": "of several"},
            }
            records.append(msgspec.structs.replace(record, **changed))
    return Pool(frame_of(records), rounds, list(loads.values()))


def of_each(frame: pd.DataFrame, column: str, change: Callable[[str, Any, int], Any]) -> Any:
    """Return a column of lists, in each of which `change(process, value, row)` replaces values.

    Values that become None are gone.
    """
    names = frame["processes"]
    changed = [
        [new for pair in zip(whose, own, strict=True) if (new := change(*pair, at)) is not None]
        if own
        else []
        for at, (whose, own) in enumerate(zip(names, frame[column], strict=True))
    ]
    return pd.Series(changed, index=frame.index, dtype=object)


def valued(frame: pd.DataFrame, columns: dict[str, Any]) -> pd.DataFrame:
    """Return a frame with other samples, and the values that belong to them."""
    values = [statistics.median(own) if own else np.nan for own in columns["samples"]]
    return frame.assign(**columns, value=values, n_processes=columns["samples"].map(len))


def arm(pool: Pool, chosen: set[Round]) -> pd.DataFrame:
    """Return the arm that has the processes of the chosen rounds."""

    def kept(process: str, value: Any, row: int) -> Any:
        return value if pool.rounds.get(process) in chosen else None

    return valued(pool.frame, {name: of_each(pool.frame, name, kept) for name in LISTS})


def slowed(
    frame: pd.DataFrame, rows: Any, factor: float, processes: set[str] | None = None
) -> pd.DataFrame:
    """Return an arm in which rows take `factor` times as long, in all processes or in some."""
    hit = np.asarray(rows)

    def longer(process: str, value: float, row: int) -> float:
        now = hit[row] and (processes is None or process in processes)
        return value * (factor if now else 1)

    times = [name for name, kind in COLUMNS.items() if kind == NUMBERS]
    return valued(frame, {name: of_each(frame, name, longer) for name in times})


def drawn(pool: Pool, rng: random.Random) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two arms of random rounds, as many of each tree in one as in the other."""
    sides: tuple[set[Round], set[Round]] = set(), set()
    rounds = sorted(set(pool.rounds.values()))
    for _, of_tree in itertools.groupby(rounds, key=lambda one: one[0]):
        own = list(of_tree)
        rng.shuffle(own)
        half = len(own) // 2
        sides[0].update(own[:half])
        sides[1].update(own[half : 2 * half])
    return arm(pool, sides[0]), arm(pool, sides[1])


def judged(a: pd.DataFrame, b: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Return what `harness compare` says, and which rows it calls: alone, and as a whole stage."""
    verdicts = judged_pairs(pair(Arm("A", a), Arm("B", b)), **how).frame
    return verdicts.assign(
        called=verdicts["verdict"].isin(MOVED), together=verdicts["stage_verdict"].isin(MOVED)
    )


def comparable(verdicts: pd.DataFrame) -> pd.DataFrame:
    return verdicts[~verdicts["verdict"].isin(["incomparable", "broken"])]


def alarms(title: str, comparisons: list[pd.DataFrame]) -> None:
    """Print how often rows and families of identical arms were called different."""
    whole = pd.concat([comparable(one).assign(pair=n) for n, one in enumerate(comparisons)])
    families = whole.groupby(["pair", "stage"])[["called", "together"]].any()
    rows, together = families.sum()
    print(
        f"\n{title}: of {len(families)} families a row is called in {rows}, and all rows together "
        f"in {together}; any of both in {families.any(axis=1).sum()}"
    )
    for stage, own in [*whole.groupby("stage"), ("all", whole)]:
        one = rate(int(own["called"].sum()), len(own))
        print(
            f"  {stage:10s} called {one.count:4d} of {one.of:5d} ({one.low:.2%} to {one.high:.2%})"
            f", unsure {(own['verdict'] == 'unsure').mean():6.1%}"
        )


def power(pool: Pool, rng: random.Random, count: int) -> pd.DataFrame:
    """Slow a tenth of the rows down, `count` times for each effect; return how many are found."""
    parts = []
    for effect in EFFECTS:
        for _ in range(count):
            a, b = map(anonymous, drawn(pool, rng))
            drawing = np.array([rng.random() < SHARE for _ in range(len(b))])
            b = slowed(b, drawing, 1 + effect).assign(fingerprint=np.where(drawing, "other", ""))
            own = comparable(judged(a, b))
            parts.append(own[own["fingerprint_b"] == "other"].assign(more=effect))
    rows = []
    for (stage, effect), own in pd.concat(parts).groupby(["stage", "more"]):
        one = rate(int((own["verdict"] == "slower").sum()), len(own))
        rows.append((stage, effect, one.count / one.of, one.low, one.high, one.of))
    return pd.DataFrame(rows, columns=["stage", "effect", "share", "low", "high", "of"])


def drawn_power(table: Path, file: Path) -> None:
    """Draw how many of the slower rows are found, by stage and effect, with 95 % intervals."""
    found = pd.read_csv(table)
    order = [name for name in STAGES if name in set(found["stage"])]
    scale = alt.Scale(domain=order, range=[STAGES[name].colour for name in order])
    share = alt.Y("share:Q", title="called slower").axis(format="%").scale(domain=[0, 1])
    chart = alt.Chart(found).encode(
        x=alt.X("effect:O", title="more time").axis(format=".0%", labelAngle=0),
        xOffset=alt.XOffset("stage:N", sort=order),
    )
    bars = chart.mark_bar().encode(y=share, color=alt.Color("stage:N", title=None, scale=scale))
    both = bars + chart.mark_rule().encode(y="low:Q", y2="high:Q")
    both.properties(width=480, height=220).save(str(file))


def planted(b: pd.DataFrame, rng: random.Random) -> dict[str, pd.DataFrame]:
    """Return arms B with a change that must be told, by what it is."""
    stage, ours = b["stage"], ~b["workload"].isin(INSTRUMENTS)
    runs = stage.map(lambda name: name in STAGES and STAGES[name].runs_program)
    newer = [json.dumps({**json.loads(text or "{}"), "jaxlib": "99"}) for text in b["environment"]]
    named = b["processes"]
    some = {one for own in named for one in own[: round(len(own) * 3 / 8)]}
    hit = (stage == "execute").to_list()
    late = [
        [one + now * 1e-3 for one in own] for own, now in zip(b["p90_samples"], hit, strict=True)
    ]
    everywhere = slowed(b, stage == "trace", 1.3)
    workload = rng.choice(sorted(set(b["workload"][ours])))
    fails = b["workload"] == workload
    failed = {"status": b["status"].mask(fails, "failed"), "reason": b["reason"].mask(fails, "no")}
    return {
        "nothing": b,
        "slower runtime, equal program": slowed(b, runs, 1.5).assign(environment=newer),
        "trace x 1.3, the reference too": everywhere.assign(
            calibrated_samples=b.calibrated_samples
        ),
        "compile x 1.5 in 3 of 8 processes": slowed(b, (stage == "compile") & ours, 1.5, some),
        "every second call 1 ms slower": b.assign(
            p90_samples=pd.Series(late, index=b.index, dtype=object)
        ),
        f"{workload} fails": b.assign(**failed),
    }


def looked(pool: Pool, rng: random.Random, count: int, limit: int) -> None:
    """Print how often identical arms were called different at any of several looks."""
    rounds = sorted(set(pool.rounds.values()))
    found: dict[str, Counter[str]] = {"its share": Counter(), "the whole error": Counter()}
    families, closed = 0, []
    for _ in range(count):
        rng.shuffle(rounds)
        ever: dict[str, set[str]] = {how: set() for how in found}
        looks: list[int] = []
        while not looks or looks[-1] < limit:
            looks.append(next_look(looks[-1] if looks else 0, limit))
            a, b = (
                anonymous(arm(pool, set(rounds[begin : begin + looks[-1]]))) for begin in (0, limit)
            )
            parts = (share([one / limit for one in looks]), 1.0)
            for part, (how, called) in zip(parts, ever.items(), strict=True):
                frame = judged(a, b, terms=Terms(in_turns=True, share=part))
                called |= set(frame["stage"][frame["called"] | frame["together"]])
                if how == "its share" and len(looks) == 1:
                    closed.append(1 - len(open_rows(frame)) / len(frame))
        families += frame["stage"].nunique()
        for how, called in ever.items():
            found[how].update(called)
    for how, counted in found.items():
        one = rate(counted.total(), families)
        stages = ", ".join(f"{stage} {n}" for stage, n in sorted(counted.items()))
        print(
            f"each look at {how}: {one.count} of {one.of} families with an alarm at any look "
            f"({one.low:.1%} to {one.high:.1%}){': ' if stages else ''}{stages}"
        )
    print(f"rows closed at the first look: {statistics.mean(closed):.0%}")


EACH = 8
"""Processes of an arm."""


def classes(pool: Pool, rng: random.Random, count: int) -> None:
    """Print how often equal arms are called different, by what the machine was like meanwhile."""
    by_tree: dict[int, list[Round]] = {}
    for one in sorted(set(pool.rounds.values())):
        by_tree.setdefault(one[0], []).append(one)
    trees = [own for own in by_tree.values() if len(own) >= 2 * EACH]

    def like() -> tuple[list[Round], list[Round]]:
        own = rng.sample(rng.choice(trees), 2 * EACH)
        return own[:EACH], own[EACH:]

    def unlike() -> tuple[list[Round], list[Round]]:
        one, other = rng.sample(trees, 2)
        return rng.sample(one, EACH), rng.sample(other, EACH)

    def changing() -> tuple[list[Round], list[Round]]:
        one, other = rng.sample(trees, 2)
        own = rng.sample(one, EACH + EACH // 2)
        return own[:EACH], own[EACH:] + rng.sample(other, EACH - EACH // 2)

    kinds: dict[str, Callable[[], tuple[list[Round], list[Round]]]] = {"like load": like}
    if len(trees) > 1:
        kinds |= {"unlike load": unlike, "load that changes": changing}
    headings = f"{'rows':>15s} {'families':>12s} {'pairs':>10s}   same unsure"
    print(f"\n{'class':18s} {'judged':14s} {headings}")
    for name, draw in kinds.items():
        ways: dict[str, list[pd.DataFrame]] = {"with proof": [], "without proof": []}
        if name == "like load":
            ways["in turns"] = []
        for _ in range(count):
            a, b = (arm(pool, set(chosen)) for chosen in draw())
            for way, frames in ways.items():
                pair = (a, b) if way == "with proof" else (anonymous(a), anonymous(b))
                terms = Terms(in_turns=way == "in turns")
                frames.append(comparable(judged(*pair, terms=terms)))
        for way, frames in ways.items():
            rows = pd.concat(frames)
            one = rate(int(rows["called"].sum()), len(rows))
            called = [own["called"] | own["together"] for own in frames]
            both = zip(called, frames, strict=True)
            stages = [one.groupby(own["stage"]).any() for one, own in both]
            families = f"{sum(one.sum() for one in stages):4d} of {sum(map(len, stages)):4d}"
            pairs = f"{sum(one.any() for one in called):3d} of {len(frames):3d}"
            shares = rows["verdict"].value_counts(normalize=True)
            print(
                f"{name:18s} {way:14s} {one.count:5d} of {one.of:6d} {families} {pairs} "
                f"{shares.get('same', 0):6.1%} {shares.get('unsure', 0):6.1%}"
            )


def main() -> None:
    given = options(__doc__, select=True, arms=24, seed=1, save="", looks=0, classes=0)
    trees, rng = [Path(one) for one in given.select], random.Random(given.seed)
    pool = pooled(trees)
    rounds = set(pool.rounds.values())
    print(
        f"seed {given.seed}; {len(rounds)} rounds of {len(trees)} trees, measured at a load of "
        f"{np.nanmin(pool.loads):.1f} to {np.nanmax(pool.loads):.1f}"
    )
    if given.looks:
        looked(pool, rng, given.arms, given.looks)
        return
    if given.classes:
        classes(pool, rng, given.classes)
        return
    arms = [drawn(pool, rng) for _ in range(given.arms)]
    alarms("Permuted", [judged(anonymous(a), anonymous(b)) for a, b in arms])
    alarms("Permuted, programs known to be equal", [judged(a, b) for a, b in arms])
    if len(trees) > 1:
        whole = [
            anonymous(arm(pool, {one for one in rounds if one[0] == n})) for n in range(len(trees))
        ]
        pairs = itertools.pairwise(whole)
        alarms("One tree against the next", [judged(*two) for two in pairs])
    found = power(pool, rng, max(1, given.arms // 3))
    print("\nSlower rows that were found")
    for one in found.itertuples():
        interval = f"{one.share:6.1%} of {one.of} ({one.low:.0%} to {one.high:.0%})"
        print(f"  {one.stage:10s} +{one.effect:.0%}: {interval}")
    if given.save:
        found.to_csv(f"{given.save}.csv", index=False, float_format="%.4g")
        drawn_power(Path(f"{given.save}.csv"), Path(f"{given.save}.svg"))
    print("\nPlanted")
    for what, changed in planted(arms[0][1], rng).items():
        frame = judged_pairs(pair(Arm("A", arms[0][0]), Arm("B", changed))).frame
        print(f"  {what}: exit code {exit_code_of(frame):d}; {summary.summary_text(frame)}")
        for line in summary.stage_lines(frame):
            print(f"    {line}")


if __name__ == "__main__":
    main()
