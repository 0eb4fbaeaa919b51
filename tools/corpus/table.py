"""What the harness and the script say of the same programs, beside each other."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import harness

LIMITS = {
    **dict.fromkeys(("trace", "lower", "compile", "execute", "execute median"), 0.05),
    "first_call": 0.10,
}
"""How far the harness may be from the script, by stage."""

COLUMNS = {"execute median": ("execute", "p50")}
"""Where the frame has what is not the value of a stage."""


def shift(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Return ours / theirs, and the 95 % interval; NaN where there are too few processes.

    The ratio is the median of the ratios of all pairs; the interval leaves out as many of them at
    each end as Mann and Whitney's U has below 2.5 % (Hodges and Lehmann, *Estimates of Location
    Based on Rank Tests*, 1963).
    """
    pairs = np.sort(np.divide.outer(np.asarray(ours), np.asarray(theirs)).ravel())
    n, m = len(ours), len(theirs)
    places = itertools.combinations(range(n + m), n)
    counts = np.array([sum(one) for one in places]) - n * (n - 1) // 2
    below = [k for k in range(len(pairs)) if (counts <= k).mean() <= 0.025]
    middle = float(np.median(pairs))
    if not below:
        return middle, math.nan, math.nan
    return middle, float(pairs[below[-1]]), float(pairs[-1 - below[-1]])


def verdict(ratio: float, low: float, high: float, limit: float) -> str:
    """Return whether a ratio is within the limit, beyond it, or may be either."""
    least, most = 1 / (1 + limit), 1 + limit
    if least <= ratio <= most:
        return "within"
    return "beyond" if low > most or high < least else "unsure"


def compared(results: Path, samples: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a row per program, size and stage."""
    frame = harness.load(results, all=True)
    frame = frame[frame["scenario"] == "off"]
    theirs = pd.DataFrame([one for one in samples if "left_out" not in one])
    rows = []
    for (program, size), of_case in theirs.groupby(["program", "size"]):
        mine = frame[(frame["workload"] == program) & (frame["size"] == size)]
        for stage, given in of_case.filter(LIMITS).items():
            if (given := given.dropna()).empty:
                continue
            name, column = COLUMNS.get(stage, (stage, "value"))
            taken = mine[mine["stage"] == name]
            good = taken[taken["status"] == "ok"][column].dropna()
            row = {"program": program, "size": size, "stage": stage, "script": given.median()}
            if good.empty:
                reason = next(iter(taken["reason"]), "") or "not measured"
                rows.append({**row, "verdict": "missing", "reason": reason})
                continue
            ratio, low, high = shift(good.tolist(), given.tolist())
            row |= {"harness": good.median(), "ratio": ratio, "low": low, "high": high}
            rows.append({**row, "verdict": verdict(ratio, low, high, LIMITS[stage])})
    return pd.DataFrame(rows)


def seconds(value: float) -> str:
    """Return a time with two or three digits that count."""
    unit, size = next(pair for pair in (("s", 1.0), ("ms", 1e-3), ("µs", 0.0)) if value >= pair[1])
    number = value / (size or 1e-6)
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def cell(row: pd.Series) -> str:
    """Return a case's stage: the script's time and the ratio, in bold where beyond."""
    if row["verdict"] == "missing":
        return f"{seconds(row['script'])}, –"
    ratio = f"{row['ratio']:.2f}"
    if not math.isnan(row["low"]):
        ratio += f" [{row['low']:.2f}, {row['high']:.2f}]"
    mark = {"beyond": "**", "unsure": "_"}.get(row["verdict"], "")
    return f"{seconds(row['script'])}, {mark}{ratio}{mark}"


def markdown(
    table: pd.DataFrame, left_out: Mapping[tuple[str, str], str], about: str = ""
) -> Iterator[str]:
    """Yield the lines of a page: a line per stage, a line per case, and what is missing."""
    yield from (about, "")
    yield "| stage | limit | cases | within | unsure | beyond | geometric mean of the ratios |"
    yield "|---|---|---|---|---|---|---|"
    missing = table["verdict"] == "missing"
    for stage, of_stage in table[~missing].groupby("stage", sort=False):
        count = of_stage["verdict"].value_counts()
        numbers = " | ".join(str(count.get(name, 0)) for name in ("within", "unsure", "beyond"))
        mean = math.exp(np.log(of_stage["ratio"]).mean())
        yield f"| `{stage}` | {LIMITS[stage]:.0%} | {len(of_stage)} | {numbers} | {mean:.3f} |"
    yield from ("", f"| program | {' | '.join(f'`{stage}`' for stage in LIMITS)} |")
    yield f"|---{'|---' * len(LIMITS)}|"
    for (program, size), of_case in table.groupby(["program", "size"]):
        cells = {row["stage"]: cell(row) for _, row in of_case.iterrows()}
        yield f"| {program} {size} | {' | '.join(cells.get(s, '') for s in LIMITS)} |"
    reasons: dict[str, list[str]] = {}
    for row in table[missing].itertuples():
        name = f"{row.program} {row.size}"
        reasons.setdefault(f"`{row.stage}`: {row.reason}", []).append(name)
    for (program, size), reason in left_out.items():
        reasons.setdefault(reason, []).append(f"{program} {size}")
    if reasons:
        yield from ("", "Not measured:", "")
        yield from (f"- {reason}: {', '.join(names)}" for reason, names in sorted(reasons.items()))


def write_below(page: Path, mark: str, lines: str) -> None:
    """Put lines below the mark of a page, in place of what is there."""
    head, mark, _ = page.read_text().partition(mark)
    page.write_text(f"{head}{mark}\n{lines}\n")
