"""Verdicts in words, one template for each code. Nothing here decides; nothing reads it back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness.frame.differences import (
    ARROW,
    MOST_VERSION,
    REMEDY,
    environment_difference,
    facts_difference,
)
from harness.frame.frame import rows_of
from harness.frame.ratios import LEAST_PROCESSES
from harness.records.units import counted, seconds_text, value_text
from harness.verdicts import counts, memory, rules, verdict
from harness.verdicts.table import cases
from harness.verdicts.verdict import ENVIRONMENT, MOVED, SLOWER, Load, Verdict

if TYPE_CHECKING:
    from harness.frame.pairs import Pair
    from harness.verdicts.compare import Comparison
    from harness.verdicts.judge import Judged

CLOCKS = {"cpu": "CPU time", "wall": "wall time"}

TURNS = "`harness compare A B --live` measures both in turns"
"""What to do where two arms met unlike loads."""

ONE_MACHINE = "Measure both on one machine."

NOTHING_DIFFERS = "nothing that is recorded differs: the machine, or a build of the same version"

PROVEN = {
    "program": "the program, its inputs and what runs it are the same",
    "module": "the module, its program, versions and flags are the same",
    "code": "code, versions, flags, Python calls and program are the same",
}


def change_text(ratio: float) -> str:
    """Return a ratio in words: `12 % slower`, `3.1 × slower`, `1.2 × faster`."""
    if ratio < 1:
        return f"{1 / ratio:.3g} × faster"
    return f"{ratio:.3g} × slower" if ratio >= 2 else f"{percent(ratio - 1)} slower"


def percent(share: float) -> str:
    """Return a share as text: 0.05 is `5 %`, 0.0123 is `1.2 %`."""
    hundredths = share * 100
    decimals = 0 if hundredths >= 9.95 or abs(hundredths - round(hundredths)) < 0.05 else 1
    return f"{hundredths:.{decimals}f} %"


def calls_text(before: float, after: float) -> str:
    """Return a change of Python's calls: `1,204 → 1,241 Python calls (+3.1 %)`."""
    share = f" ({100 * (after / before - 1):+.1f} %)" if before else ""
    return f"{before:,.0f}{ARROW}{after:,.0f} Python calls{share}"


def loads_text(a: Load, b: Load) -> str:
    """Return both loads in words: `other processes used 0.1 (A) and 1.7 (B) of 2 cores, …`."""
    cores = max(a.cores, b.cores)
    parts = []
    if a.others == a.others and b.others == b.others:
        used = f"{a.others:.1f} (A) and {b.others:.1f} (B)"
        parts.append(f"other processes used {used} of {cores} cores")
    if a.average == a.average and b.average == b.average:
        parts.append(f"load average {a.average:.1f} and {b.average:.1f}")
    return ", ".join(parts)


def machine_text(ratio: float, at_most: str = "") -> str:
    """Return what the clock said although nothing differs, in words."""
    return f"the machine differed by {at_most}{percent(max(ratio, 1 / ratio) - 1)}"


# --- a row ---------------------------------------------------------------------------------------


def reason(judged: Judged, pair: Pair, facts: bool = True) -> str:
    """Return why a row has its verdict; `facts` says whether those of another program are."""
    one, stage = judged
    a, b = pair
    parts = [_why(one)]
    if a is not None and b is not None:
        parts += _causes(one, pair, facts)
    if stage.kind in MOVED and one.evidence:
        what = (
            "some processes of the stage are"
            if stage.cause == "processes"
            else "the whole stage is"
        )
        parts.append(f"{what} {stage.kind}")
    return "; ".join(filter(None, parts))


def _causes(one: Verdict, pair: Pair, facts: bool) -> list[str]:
    a, b = pair
    assert a is not None
    assert b is not None
    parts = []
    if one.cause == verdict.ENVIRONMENT:
        what = environment_difference(a["environment"], b["environment"]) or ", ".join(
            f"{name} {a[name]}{ARROW}{b[name]}" for name in counts.VERSIONS if a[name] != b[name]
        )
        parts.append(f"environment: {what or NOTHING_DIFFERS}")
        if rules.program_of(a, b) == "equal":
            parts.append("the program is the same")
    elif one.cause == verdict.INPUTS:
        parts.append("the program is the same, its inputs differ")
    elif one.cause == verdict.PROGRAM and one.kind != verdict.SAME:
        other = facts_difference(a, b) or "no total differs"
        parts.append(f"program: {other}" if facts else "another program")
    return parts


def _why(one: Verdict) -> str:
    if not one.evidence:
        return PROBLEMS[one.problem](*one.detail) if one.problem else ""
    return _EVIDENCE[one.evidence](one)


def _by_clock(one: Verdict) -> str:
    change, least = change_text(one.ratio), percent(one.effect)
    clock = CLOCKS[one.clock]
    if one.cause == verdict.LOAD:
        loads = loads_text(*one.loads) if one.loads else ""
        return f"measured under unlike loads: {loads}; {TURNS}"
    if one.cause == verdict.MACHINE:
        return (
            f"{change} in {clock}, but nothing that determines it differs, and all rows moved one "
            f"way: it is the machine; {TURNS}"
        )
    if one.kind in MOVED:
        text = f"{change} in {clock} (threshold {least}), {_chance(one)}"
        if one.calls:
            rose = one.calls[1] > one.calls[0]
            agrees = (one.kind == SLOWER) == rose
            calls = _calls(one)
            text += f"; proven by counts: {calls}" if agrees else f", though {calls}"
        return text
    excluded = percent(rules.SAME_WITHIN * one.effect)
    interval = f"the 95 % interval {one.low:.3g} to {one.high:.3g}"
    if one.kind == verdict.SAME:
        return f"less than {least} in {clock}, and surely less than {excluded}: {interval}"
    if not min(one.n_a, one.n_b) >= LEAST_PROCESSES:
        lacking = {
            arm: LEAST_PROCESSES - n
            for arm, n in (("A", one.n_a), ("B", one.n_b))
            if n < LEAST_PROCESSES
        }
        more = " and ".join(f"{count} more of {arm}" for arm, count in lacking.items())
        return (
            f"too few processes ({one.n_a} and {one.n_b}): at least {more}; --effort default "
            "takes 8"
        )
    tell = "more processes would tell (--effort thorough)"
    if max(one.ratio, 1 / one.ratio) >= 1 + one.effect:
        return f"{change} in {clock}, but this may be chance: {_chance(one)}; {tell}"
    return f"{interval} reaches beyond {excluded}; {tell}"


def _chance(one: Verdict) -> str:
    return f"p = {one.p_adjusted:.2g} among {counted(one.rows, 'row')}"


def _calls(one: Verdict) -> str:
    assert one.calls is not None
    return calls_text(*one.calls)


def _by_waiting(one: Verdict) -> str:
    more = f"{seconds_text(abs(one.waiting_s))} {'more' if one.waiting_s > 0 else 'less'}"
    what = f"waits {more} (wall time beyond CPU time)"
    if one.cause == verdict.LOAD:
        loads = f"{loads_text(*one.loads)}; " if one.loads else ""
        return f"{what}, which the load of the machine can do: {loads}{TURNS}"
    return f"{what} in {one.n_b} process{'es' * (one.n_b > 1)}" if one.needs else what


def _by_calls(one: Verdict) -> str:
    return f"some calls: the slowest tenth is {change_text(one.ratio)}, {_chance(one)}"


def _by_proof(one: Verdict) -> str:
    text = PROVEN[one.problem]
    return f"{text}; {machine_text(one.machine)}" if one.cause == verdict.MACHINE else text


def _by_value(one: Verdict) -> str:
    least = percent(one.effect)
    if one.kind == verdict.SAME:
        if one.a == one.b:  # 0 and 0 have no ratio
            return "equal"
        return f"{percent(abs(one.ratio - 1))} apart: less than {least}"
    values = f"{value_text(one.a, one.unit)}{ARROW}{value_text(one.b, one.unit)}"
    ratio = f", {one.ratio:.3g} ×" if one.ratio == one.ratio else ""
    only = "; XLA's figure on a CPU leaves out what libraries hold, so it decides nothing"
    return f"{values}{ratio} (threshold {least}){only if one.cause == memory.ESTIMATE else ''}"


_EVIDENCE: dict[str, Callable[[Verdict], str]] = {
    verdict.CLOCK: _by_clock,
    verdict.WAITING: _by_waiting,
    verdict.CALLS: _by_calls,
    verdict.COUNTS: lambda one: f"proven by counts: {_calls(one)}",
    verdict.PROOF: _by_proof,
    verdict.VALUE: _by_value,
}

PROBLEMS: dict[str, Callable[..., str]] = {
    "python": lambda one, other: f"Python {one}{ARROW}{other}, which counts differently",
    "not counted": lambda arms: f"no calls counted in {arms}: measure again with this harness",
    "only in": lambda arm: f"only in {arm}",
    "fails": lambda status, text: f"B {_status(status, text)}",
    "works again": lambda status, text: f"works again: A {_status(status, text)}",
    "status": lambda arms, *texts: _both_bad(arms, texts),
    "version": lambda one, other: (
        f"the workload or the method changed: {one[:MOST_VERSION]}{ARROW}{other[:MOST_VERSION]}"
    ),
    "protocol": lambda one, effort, other, its: (
        f"processes did different things: {one} (effort {effort}) and {other} (effort {its})"
    ),
    "method": lambda stage, older, one, other: (
        f"{stage} is taken in another way since {older}, by method {one} and {other}: check the "
        f"commit of {older} out and measure it with `harness run`"
    ),
    "unit": lambda one, other: f"the unit changed: {one or 'none'}{ARROW}{other or 'none'}",
    "samples of which process": lambda arm: (
        f"{arm} does not say which samples are of which process"
    ),
    "one name": lambda differs: f"{differs}. {REMEDY}",
    "machines": lambda differs: f"unlike machines: {differs}. {ONE_MACHINE}",
    "no time": lambda arm, value: f"{arm} has a sample that is no time: {value} s",
    "no samples": lambda arm: f"{arm} has no samples",
}


def _status(status: str, text: str) -> str:
    return ": ".join(filter(None, (status, text)))


def _both_bad(arms: str, texts: Sequence[str]) -> str:
    statuses = (_status(*one) for one in zip(texts[::2], texts[1::2], strict=True))
    return f"{arms.replace(' ', ' and ')} {' / '.join(dict.fromkeys(statuses))}"


# --- a stage as a whole --------------------------------------------------------------------------


def stage_reason(stage: Verdict, pairs: Sequence[Pair]) -> str:
    """Return why all rows of a stage together have their verdict; `pairs` are those rows."""
    if not stage.kind:
        return ""
    if stage.cause == verdict.PROCESSES:
        arm, count, of = stage.detail
        text = f"{count} of {of} processes of {arm} are slower in most cases"
        return f"{text}, p = {stage.p_adjusted:.2g}; the others are not"
    if stage.cause == verdict.LOAD:
        loads = loads_text(*stage.loads) if stage.loads else ""
        return f"measured under unlike loads: {loads}; {TURNS}"
    moved = f"{change_text(stage.ratio)} in most of {stage.cases} cases"
    chance = f"p = {stage.p_adjusted:.2g} among {counted(stage.rows, 'stage')}"
    if stage.cause == verdict.MACHINE:
        return f"{moved}, but nothing that determines it differs: it is the machine"
    if stage.kind not in MOVED:
        return f"{moved}, {chance}"
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    a, b = both[-1]
    what = environment_difference(a["environment"], b["environment"]) or NOTHING_DIFFERS
    parts = [f"{moved} (threshold {percent(stage.effect)}), {chance}", f"environment: {what}"]
    programs = Counter(rules.program_of(*pair) for pair in both)
    if programs["equal"] or programs["differs"]:
        parts.append(f"programs: {programs['equal']} equal, {programs['differs']} differ")
    return "; ".join(parts)


def with_reasons(
    frame: pd.DataFrame, judged: Sequence[Judged], pairs: Sequence[Pair], facts: bool = True
) -> pd.DataFrame:
    """Return a frame of verdicts with the columns `reason` and `stage_reason`, of text.

    `judged` and `pairs` are what its rows were made of; without `facts`, those of another program
    are left out.
    """
    members: dict[int, list[Pair]] = {}
    stages = {id(one.stage): one.stage for one in judged}
    for one, pair in zip(judged, pairs, strict=True):
        members.setdefault(id(one.stage), []).append(pair)
    wholes = {number: stage_reason(stage, members[number]) for number, stage in stages.items()}
    texts = {
        "reason": [reason(*both, facts) for both in zip(judged, pairs, strict=True)],
        "stage_reason": [wholes[id(one.stage)] for one in judged],
    }
    return frame.assign(
        **{name: pd.Series(own, frame.index, dtype="str") for name, own in texts.items()}
    )


def reasons_of(comparison: Comparison, facts: bool = True) -> pd.DataFrame:
    """Return the frame of a comparison :func:`with_reasons`."""
    return with_reasons(comparison.frame, comparison.judged, comparison.pairs.pairs, facts)


def environment_lines(frame: pd.DataFrame, arms: str = "A to B") -> list[str]:
    """Return what else differs between the arms of a comparison in most rows, by machine."""
    several = frame["machine"].nunique() > 1
    lines = []
    for machine, own in frame.groupby("machine", sort=False):
        texts = Counter(text for text in own["also_differs"] if text)
        for text, count in texts.most_common(1):
            where = f" on {machine}" if several else ""
            some = f" in {count} of {len(own)} rows" if len(texts) > 1 else ""
            lines.append(f"From {arms}{where}{some}: {text}.")
    return lines


# --- the answer in a sentence --------------------------------------------------------------------

VERBS = {
    "trace": "traces",
    "lower": "lowers",
    "compile": "compiles",
    "execute": "runs",
    "compute": "computes",
    "dispatch": "is dispatched",
    "in_flight": "runs, calls in flight,",
    "load": "loads",
    "first_call": "makes its first call",
    "start": "starts",
}
"""What a program does in a stage."""


IN_A_SENTENCE = {verdict.MORE: "with higher counts", verdict.LESS: "with lower counts"}
"""Verdicts of which "2 more" would say nothing."""


def sentence(comparison: Comparison) -> str:
    """Return the answer in a sentence, with the number."""
    frame = comparison.frame
    broken = frame[frame["verdict"] == verdict.BROKEN]
    if len(broken):
        names = list(dict.fromkeys(name.rpartition(".")[2] for name in broken["workload"]))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"`{names[0]}`{more} broke"
    moved = frame[frame["verdict"].isin([*MOVED, verdict.MORE, verdict.LESS])]
    if len(moved):
        return _moved_text(frame, moved)
    of_machine = frame[frame["cause"] == verdict.MACHINE]
    unsure = frame[frame["verdict"] == verdict.UNSURE]
    judged = frame[frame["evidence"] != ""]
    if judged.empty:
        return "Nothing can be compared"
    rows = counted(len(judged), "row")
    if len(unsure) and (unsure["cause"] == verdict.MACHINE).any():
        most = math.exp(max(abs(math.log(ratio)) for ratio in of_machine["clock_ratio"]))
        return (
            f"No significant change in {rows}: nothing that determines them differs, and the "
            f"clock moved all one way, by up to {percent(most - 1)}: it is the machine"
        )
    if len(unsure) == len(judged):
        return f"Undecided: all {rows} are unsure"
    if len(unsure):
        return (
            f"No significant change in {len(judged) - len(unsure)} of {rows}; {len(unsure)} unsure"
        )
    return f"No significant change in {rows}"


def _moved_text(frame: pd.DataFrame, moved: pd.DataFrame) -> str:
    worse = (moved[moved["verdict"] == kind] for kind in (SLOWER, verdict.MORE))
    chosen = next((rows for rows in worse if len(rows)), moved)
    whole = chosen[chosen["stage_verdict"].isin(MOVED) & (chosen["stage_cause"] == ENVIRONMENT)]
    first = _worst(whole if len(whole) else chosen)
    if len(whole):
        text = f"{first['stage']} is {change_text(first['stage_ratio'])} in most cases"
        moved = moved[moved["stage"] != first["stage"]]
    else:
        text = _change_of(frame, first)
        moved = moved.drop(index=first["at"])
    kinds = Counter(moved["verdict"]).items()
    more = ", ".join(f"{count} more {IN_A_SENTENCE.get(kind, kind)}" for kind, count in kinds)
    unsure = int((frame["verdict"] == verdict.UNSURE).sum())
    if more:
        return f"{text}; {more}" + (f", {unsure} unsure" if unsure else "")
    if unsure:
        return f"{text}; nothing else surely changed ({unsure} unsure)"
    return f"{text}; nothing else changed" if (frame["verdict"] == verdict.SAME).any() else text


def _worst(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the row of the largest change, with its label as `at`."""
    candidates = rows_of(rows.assign(at=rows.index, case_text=cases(rows)))
    return max(candidates, key=lambda row: abs(math.log(row["ratio"])) if row["ratio"] > 0 else 0.0)


def _change_of(frame: pd.DataFrame, row: Mapping[str, Any]) -> str:
    name = row["workload"].rpartition(".")[2]
    alike = {one for one in frame["workload"] if one.rpartition(".")[2] == name}
    name = row["workload"] if len(alike) > 1 else name
    own = frame[(frame["workload"] == row["workload"]) & (frame["stage"] == row["stage"])]
    name = f"{name} {row['case_text']}".strip() if len(own) > 1 else name
    if row["unit"] not in (verdict.SECONDS, "calls"):
        values = (
            f"{value_text(row['a_s'], row['unit'])}{ARROW}{value_text(row['b_s'], row['unit'])}"
        )
        return f"`{name}` {row['stage']}: {values}"
    verb = VERBS.get(row["stage"], f"takes, in {row['stage']},")
    if row["evidence"] == verdict.COUNTS:
        more = f"{100 * (row['ratio'] - 1):+.1f} %".replace("+", "")
        kind = "more" if row["ratio"] > 1 else "less"
        return f"`{name}` {verb} with {more.replace('-', '')} {kind} Python calls"
    most = max(row["ratio"], 1 / row["ratio"])
    kind = "slower" if row["ratio"] > 1 else "faster"
    amount = percent(most - 1) if kind == "slower" and most < 2 else f"{most:.3g} times"
    return f"`{name}` {verb} {amount} {kind}"
