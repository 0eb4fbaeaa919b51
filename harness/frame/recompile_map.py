"""Which cases of a sweep have the same program and which force a new one, from records alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import UsageError
from harness.frame.cases import CASE, SECONDS, alike, builds, check
from harness.frame.tables import case_text

if TYPE_CHECKING:
    import pandas as pd

_SWEEP = [name for name in CASE if name not in ("transform", "precision")]
"""What is equal in all cases of one sweep: between those, programs are compared."""

_CASES = ("case", "new_program", "same_program_as", "reason", "fingerprint")
_AXES = ("axis", "new_program", "n_values", "n_cases", "n_programs", "build_s", "saved_s")


def recompile_map(frame: pd.DataFrame, by: Literal["case", "axis"] = "case") -> pd.DataFrame:
    """Return which cases of a workload XLA built the same program for, and which needed a new one.

    Nothing is measured: programs are equal where their fingerprints are. Whether JAX builds an
    equal program again depends on how it is called, which `harness profile` sees. Cases
    without a fingerprint are left out.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.
        by: `"case"`, or `"axis"` for a summary.

    Returns:
        By case, in the order of the frame: `machine`, `commit`, `dirty`, `env`, `effort`, `night`,
        `jax`, `workload`, `version`, `target`, `transform`, `precision`, `scenario`, a column per
        axis, `case` (as text), `new_program`, `same_program_as` (an earlier case of the workload,
        else empty), `reason` (what is new against the earlier case most alike: `dtype: float32 →
        bfloat16`; `first call`; empty where nothing is new), `trace_s`, `lower_s`, `compile_s`,
        their sum `build_s` (medians over processes), `fingerprint`.

        By axis, transform and precision included, those with two values or more: the columns of
        origin, `jax`, `workload`, `version`, `target`, `scenario`, then

        - `axis`, and `new_program`: whether changing it alone makes one: `always`, `sometimes`,
          `never`.
        - `n_values` of the axis; `n_cases` that differ from another one in this axis only;
          `n_programs` that they need, counted anew for each combination of the other axes.
        - `build_s`: trace, lower and compile of all those cases.
        - `saved_s`: what of it one program for all values would save, the costliest one kept: by
          padding sizes to one bucket, or passing a static argument as an array. What it would cost
          in each call, this does not say.

    Raises:
        UsageError: this is no frame of results, or `by` is something else.
    """
    import pandas as pd

    if by not in ("case", "axis"):
        raise UsageError(f"by={by!r} is unknown, expected 'case' or 'axis'.")
    check(frame, "harness.recompile_map", ["fingerprint"])
    table, axes = builds(frame, _CASES)
    table = table[table["fingerprint"] != ""]
    if by == "axis":
        rows = [row for part in alike(table, _SWEEP) for row in _by_axis(part, axes)]
        found = pd.DataFrame(rows, columns=[*_SWEEP, *_AXES], dtype=object)
        types = {**dict.fromkeys([*_SWEEP, "axis", "new_program"], "str")}
        types |= dict.fromkeys(("n_values", "n_cases", "n_programs"), "int64")
        return found.astype({**types, "build_s": "float64", "saved_s": "float64"})
    said = [one for part in alike(table, _SWEEP) for one in _by_case(part, axes)]
    about = pd.DataFrame(said, columns=["at", *_CASES[:4]]).set_index("at").reindex(table.index)
    found = table.join(about)[[*CASE, *axes, *_CASES[:4], *SECONDS, "fingerprint"]]
    text = dict.fromkeys(("case", "same_program_as", "reason"), "str")
    return found.astype({**text, "new_program": bool}).reset_index(drop=True)


def _by_case(part: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield index, text, newness, twin and reason of each case of one sweep."""
    told = ["transform", "precision", *axes]
    first: dict[str, str] = {}
    before: list[dict[str, Any]] = []
    for at, row in part.iterrows():
        own = {name: row[name] for name in axes}
        label = case_text(own, row["transform"], row["target"], row["precision"])
        label = label or "the only case"
        twin = first.setdefault(row["fingerprint"], label) if row["fingerprint"] in first else ""
        first.setdefault(row["fingerprint"], label)
        now = {name: row[name] for name in told}
        differences = [_difference(old, now) for old in before]
        nearest: list[str] = min(differences, key=len) if differences else ["first call"]
        reason = "; ".join(nearest)
        before.append(now)
        yield at, label, not twin, twin, "" if twin else reason


def _difference(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    # By repr, as NaN stands for an axis that both lack.
    return [
        f"{name}: {old[name]} → {new[name]}" for name in new if repr(old[name]) != repr(new[name])
    ]


def _by_axis(part: pd.DataFrame, axes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each axis of one sweep that has two values or more."""
    told = ["transform", "precision", *axes]
    varied = [name for name in told if part[name].map(repr).nunique() > 1]
    for axis in varied:
        others = [name for name in varied if name != axis]
        sets = [found for found in alike(part, others) if len(found) > 1]
        if not sets:
            continue
        programs = [found["fingerprint"].nunique() for found in sets]
        cases = sum(map(len, sets))
        always, never = sum(programs) == cases, sum(programs) == len(sets)
        build_s = float(sum(found["build_s"].sum() for found in sets))
        kept_s = float(sum(found["build_s"].max() for found in sets))
        yield {
            **{name: part[name].iloc[0] for name in _SWEEP},
            "axis": axis,
            "new_program": "always" if always else "never" if never else "sometimes",
            "n_values": len({repr(value) for found in sets for value in found[axis]}),
            "n_cases": cases,
            "n_programs": sum(programs),
            "build_s": build_s,
            "saved_s": build_s - kept_s,
        }
