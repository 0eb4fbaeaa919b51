"""Rows from records: one per case and stage, over all processes that measured the case.

Medians are taken for all rows of as many processes at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.frame.columns import LISTS, objects
from harness.frame.frame import FLAGS, Array, flags_of, stage_order, to_frame
from harness.frame.record_cases import (
    DESCRIBED,
    PROGRAM_CHANGED,
    WIDTH,
    CaseRecords,
    Collector,
    Remark,
)
from harness.program.facts import BUILT, TOTALS
from harness.stages.registry import CASE_STAGES, OWN_PROGRAM
from harness.stages.sampling import LEVEL, median_interval_ranks


def rows(found: Collector) -> pd.DataFrame:
    """Return one row per case and stage, cases in the order of what tells them apart."""
    counting = [
        one
        for one in found.cases.values()
        # A module that could not be imported, and can be again, has skipped processes alone.
        if one.described or any(p.status != "skipped" for p in one.processes.values())
    ]
    cases = sorted(counting, key=CaseRecords.order)
    left_out = [one.leave_other_code_out() for one in cases]
    _share_inputs(cases)
    stages = sorted(found.stages, key=stage_order)
    width = len(stages)
    ranks = np.empty(width, np.int64)
    ranks[[found.stages[stage][0] for stage in stages]] = np.arange(width)

    processes = [one for case in cases for one in case.processes.values()]
    of = np.repeat(np.arange(len(cases)), [len(case.processes) for case in cases])
    flat = np.frombuffer(bytearray().join(one.values for one in processes)).reshape(-1, WIDTH)
    taken = [len(one.values) // WIDTH for one in processes]
    process_of = np.repeat(objects(one.name for one in processes), taken)
    row_of = np.repeat(of, taken) * width
    row_of += ranks[flat[:, 0].astype(np.int64)]
    remarks: dict[int, list[Remark]] = {}
    for number, one in zip(of.tolist(), processes, strict=True):
        for remark in one.remarks:
            remarks.setdefault(number * width + int(ranks[remark[0]]), []).append(remark)

    ids = np.union1d(row_of, np.fromiter(remarks, np.int64, len(remarks)))
    bare = np.setdiff1d(np.arange(len(cases)), ids // width)
    usual = np.sort(ranks[[found.stages[stage][0] for stage in CASE_STAGES]])
    # Old processes that took `compute` alone: a case of which there is none has its row already.
    bare = np.array([n for n in bare.tolist() if cases[n].apart not in OWN_PROGRAM], np.int64)
    taken_apart = np.array([bool(one.apart) for one in cases], bool)[bare]
    ids = np.union1d(ids, (bare[~taken_apart, None] * width + usual).ravel())
    own = [ranks[found.stages[cases[number].apart][0]] for number in bare[taken_apart]]
    ids = np.union1d(ids, bare[taken_apart] * width + np.array(own, np.int64))
    case = ids // width
    taken_columns = _statistics(row_of, flat, process_of, ids)
    for number, stage, names, values in _own_clock(cases):
        row = int(np.searchsorted(ids, number * width + ranks[stage]))
        if row < len(ids) and ids[row] == number * width + ranks[stage]:
            taken_columns["cpu_samples"][row] = values
            taken_columns["cpu_processes"][row] = names

    facts, notes = _facts(cases)
    comparisons = [_comparison(one) for one in cases]
    for number, ((_, _, incomparable), other) in enumerate(zip(comparisons, left_out, strict=True)):
        changed = PROGRAM_CHANGED if cases[number].program_changed else ""
        if incomparable or other or changed:
            said = notes.get(number), incomparable, other, changed
            notes[number] = "; ".join(filter(None, said))
    flags = [flags_of(one.environment, bool(one.text["threads"])) for one in cases]
    columns = {
        **taken_columns,
        **{name: objects(one.text[name] for one in cases)[case] for name in DESCRIBED},
        **{
            name: objects(getattr(one, name) for one in cases)[case]
            for name in ("effort", "protocol", "environment", "fingerprint", "inputs")
        },
        **{name: objects(one[name] for one in flags)[case] for name in FLAGS},
        "code": objects(one.ran() for one in cases)[case],
        "entry_bytes": np.array([one.entry_bytes for one in cases], float)[case],
        "n_forked": np.array(
            [sum(p.forked for p in one.processes.values()) for one in cases], float
        )[case],
        "commit_date": np.array([one.commit_date for one in cases], np.int64)[case],
        "started_at": np.array(
            [max(p.started_at for p in one.processes.values()) for one in cases], np.int64
        )[case],
        "stage": objects(stages)[ids % width],
        "unit": objects(["seconds"])[np.zeros(len(ids), np.int64)],
        "comparable": objects(one[0] for one in comparisons)[case],
        "labels": objects(one[1] for one in comparisons)[case],
        **{name: facts[:, number][case] for number, name in enumerate(TOTALS)},
    }
    outcomes = objects([("ok", "")])[np.zeros(len(ids), np.int64)]
    valued = columns["n_processes"] > 0
    failed = np.array([bool(one.reasons("failed")) for one in cases], bool)
    special = ~valued | failed[case]
    for known in (remarks, notes):
        numbers = np.fromiter(known, np.int64, len(known))
        special |= np.isin(ids if known is remarks else case, numbers)
    for row in np.flatnonzero(special).tolist():
        number = int(case[row])
        outcomes[row] = _outcome(
            cases[number],
            int(columns["n_processes"][row]),
            remarks.get(int(ids[row]), []),
            notes.get(number, ""),
        )
    columns["status"] = objects(status for status, _ in outcomes)
    columns["reason"] = objects(reason for _, reason in outcomes)
    return to_frame(columns, [one.axes for one in cases], case)


def _statistics(row_of: Array, flat: Array, process_of: Array, ids: Array) -> dict[str, Any]:
    """Return the columns made of values, for all rows of as many processes at once.

    Args:
        row_of: which row each process's stage is of.
        flat: float64 (stages of processes, WIDTH), of :func:`harness.frame.record_cases.elements`.
        process_of: the name of each of those processes.
        ids: the rows, sorted.
    """
    order = np.argsort(row_of, kind="stable")
    flat, process_of = flat[order], process_of[order]
    known_of_some = {
        "cpu_samples": flat[:, 11] / 1e9,
        "p90_samples": flat[:, 6] / 1e9,
        "waiting_samples": flat[:, 12] / 1e9,
        "others_cores": flat[:, 13],
        "load_averages": flat[:, 14],
    }
    columns = {
        "value": flat[:, 1] / 1e9,
        "calibrated": flat[:, 1] / flat[:, 2],
        **{name: flat[:, 3 + at] / 1e9 for at, name in enumerate(("least", "p10", "p50", "p90"))},
        "programs": flat[:, 8],
        "programs_s": flat[:, 9] / 1e9,
        "collected_s": flat[:, 10] / 1e9,
        "method": flat[:, 15],
    }
    intervals = {"value": ("low", "high"), "p50": ("p50_low", "p50_high")}
    known, starts, counts = np.unique(row_of[order], return_index=True, return_counts=True)
    rows = np.searchsorted(ids, known)
    medians = pd.DataFrame(columns).groupby(row_of[order]).median().reindex(ids)
    names = (*(name for pair in intervals.values() for name in pair), "n_calls")
    numbers = {name: np.full(len(ids), np.nan) for name in names}
    sizes = np.zeros(len(ids), np.int64)
    sizes[rows] = counts
    lists = {name: np.empty(len(ids), object) for name in LISTS}
    bare = np.flatnonzero(sizes == 0)
    for column in lists.values():
        column[bare] = objects([] for _ in bare)
    for size in np.unique(counts).tolist():
        at = rows[counts == size]
        members = starts[counts == size][:, None] + np.arange(size)
        ranks = median_interval_ranks(size)
        numbers["n_calls"][at] = flat[members, 7].sum(axis=1)
        lists["samples"][at] = objects(columns["value"][members].tolist())
        lists["calibrated_samples"][at] = objects(columns["calibrated"][members].tolist())
        lists["processes"][at] = objects(process_of[members].tolist())
        for name, of_processes in known_of_some.items():
            known_here = ~np.isnan(of_processes[members]).all(axis=1)
            lists[name][at[known_here]] = objects(of_processes[members][known_here].tolist())
            lists[name][at[~known_here]] = objects([] for _ in at[~known_here])
        lists["cpu_processes"][at] = objects(
            names if cpu else []
            for names, cpu in zip(lists["processes"][at], lists["cpu_samples"][at], strict=True)
        )
        if ranks is None:
            continue
        for name, ends in intervals.items():
            ordered = np.sort(columns[name][members], axis=1)
            # NaN, which sorts last, has no rank: then some process does not know.
            ordered[np.isnan(ordered[:, -1])] = np.nan
            for end, rank in zip(ends, ranks, strict=True):
                numbers[end][at] = ordered[:, rank]
    of_rows = {name: medians[name].to_numpy() for name in columns}
    level = np.where(np.isnan(numbers["low"]), np.nan, LEVEL)
    of_rows |= {"interval_level": level, "n_samples": sizes, "n_processes": sizes}
    return {**of_rows, **numbers, **lists}


def _own_clock(cases: Sequence[CaseRecords]) -> Iterator[tuple[int, int, list[str], list[float]]]:
    """Yield what processes that take `compute` say of the stages of their cases.

    That is the number of the case that visits have, the stage's number, the processes, and the
    seconds of CPU time of each.
    """
    for case, number in _own_program(cases):
        taken = [one for one in case.processes.values() if one.cpu_ns]
        for stage in {stage for one in taken for stage in one.cpu_ns}:
            having = [one for one in taken if stage in one.cpu_ns]
            yield number, stage, [p.name for p in having], [p.cpu_ns[stage] / 1e9 for p in having]


def _own_program(cases: Sequence[CaseRecords]) -> list[tuple[CaseRecords, int]]:
    """Return cases of processes that take `compute`, with the number of the case of visits."""

    def known(case: CaseRecords) -> tuple[str, ...]:
        return (*case.text.values(), repr(case.axes))

    visited = {known(case): number for number, case in enumerate(cases) if not case.apart}
    own = [case for case in cases if case.apart in OWN_PROGRAM]
    return [(case, visited[known(case)]) for case in own if known(case) in visited]


def _share_inputs(cases: Sequence[CaseRecords]) -> None:
    """Let what was found out of a case's inputs hold in all of its processes."""
    for case, number in _own_program(cases):
        case.inputs = cases[number].inputs


def _outcome(case: CaseRecords, valued: int, remarks: list[Remark], note: str) -> tuple[str, str]:
    """Return status and reason of a row; `remarks` are what processes say of its stage.

    Of `valued` processes it has values.
    """
    failed, skipped = case.reasons("failed"), case.reasons("skipped")
    count = len(case.processes)
    if len(failed) + len(skipped) == count and not valued:
        return ("failed", _commonest(failed)) if failed else ("skipped", _commonest(skipped))
    some = failed and valued < count  # the others failed later, and have a value of this stage
    share = f"{len(failed)} of {count} processes failed: {_commonest(failed)}" if some else ""
    reasons: Counter[str] = Counter()
    for _, counts, _ in remarks:
        reasons.update(counts)
    refused = ""
    if reasons:
        samples = f"{reasons.total()} sample{'' if reasons.total() == 1 else 's'}"
        refused = f"{samples} refused: {reasons.most_common(1)[0][0]}"
    if valued:
        said = [why for _, _, why in remarks if why]
        usual = _commonest(said) if 2 * len(said) > count else ""
        if usual and valued + len(said) <= count:
            usual = f"{len(said)} of {count} processes have no value: {usual}"
        return "ok", "; ".join(filter(None, (share, refused, usual, note)))
    if refused:
        return "refused", "; ".join(filter(None, (refused, share)))
    missing = _commonest(why for _, counts, why in remarks if not counts) or "no samples"
    return "skipped", "; ".join(filter(None, (missing, share)))


def _commonest(reasons: Iterable[str]) -> str:
    return next((reason for reason, _ in Counter(reasons).most_common(1)), "")


def _facts(cases: list[CaseRecords]) -> tuple[Array, dict[int, str]]:
    """Return the facts of each case, and for some what their processes differ in.

    They are float64 (cases, facts), NaN where no process knows one or two contradict each other.
    Of Python's calls, which differ by a few, the least are taken.
    """
    table, notes = np.full((len(cases), len(TOTALS)), np.nan), {}
    for number, case in enumerate(cases):
        distinct = {id(one.facts): one.facts for one in case.processes.values() if one.facts}
        lists = [[getattr(facts, name) for name in TOTALS] for facts in distinct.values()]
        if len(lists) == 1:
            table[number] = lists[0]  # NumPy makes NaN of None
        elif lists:
            known = [
                {value for value in fact if value is not None} for fact in zip(*lists, strict=True)
            ]
            by_name = dict(zip(TOTALS, known, strict=True))
            differing = [name for name in BUILT if len(by_name[name]) > 1]
            table[number] = [
                np.nan if not one or name in differing else min(one)
                for name, one in by_name.items()
            ]
            if differing:
                notes[number] = "processes built different programs: they disagree on " + (
                    ", ".join(differing)
                )
    return table, notes


def _comparison(case: CaseRecords) -> tuple[str, str, str]:
    """Return of a comparison `comparable`, `labels`, and why it has no ratio; else empty texts."""
    sides = [one.comparison for one in case.processes.values() if one.comparison is not None]
    if not sides:
        return "", "", ""
    labels = dict.fromkeys(label for side in sides for label in side.labels)
    reasons = dict.fromkeys(reason for side in sides for reason in side.reasons)
    comparable = "yes" if all(side.comparable for side in sides) else "no"
    why = f"not comparable: {'; '.join(reasons)}" if reasons else ""
    return comparable, "; ".join(labels), why
