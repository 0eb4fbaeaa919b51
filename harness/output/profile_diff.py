"""What changed from one profile to another: the answer in sentences, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from harness.output.profile import damage_text
from harness.output.profile_causes import cause_text, sentence
from harness.output.profile_remedies import remedy_text
from harness.profiles.compare import (
    NOT_KNOWN,
    FunctionChange,
    ProfileDifference,
    cause_name,
    numbers,
)
from harness.profiles.functions import COUNTS, Counted
from harness.profiles.names import shortened
from harness.records.units import counted, often_text, seconds_text

SCHEMA = 1

SECONDS = "Seconds are of one run each, without an error bar; counts are exact."

MOST = 4

VERBS = ("traces", "lowers", "builds")


def answer(difference: ProfileDifference) -> list[str]:
    """Return what changed, in sentences, what matters most first."""
    changed, totals = difference.changed, difference.totals
    own = [change for change in changed if not change.function.eager]
    texts = []
    if own and all(_moved_to_cache(change) for change in own):
        high, low, more, fewer = _ordered(*totals["loads"])
        programs = counted(int(totals["loads"][1] + totals["compiles"][1]), "program")
        texts.append(
            f"{more} loads {high} of {programs} from the persistent cache, {fewer} "
            f"{low or 'none'}; nothing else changed."
        )
        own = []
    texts += [_sentence(change) for change in own[:MOST]]
    if len(own) > MOST:
        texts.append(f"{counted(len(own) - MOST, 'more function')} changed.")
    high, low, more, fewer = _ordered(*totals["eager programs"])
    if high != low:
        programs = counted(high, "one-operation program")
        texts.append(f"{more} compiles {programs} of JAX's own, {fewer} {low}.")
    if texts:
        return texts
    if changed:
        some = counted(len(changed), "function")
        return [f"{some} of JAX's own changed, and none of the program's."]
    if not difference.changes:
        return ["Neither builds anything."]
    functions = counted(int(totals["functions"][0]), "function")
    builds = counted(int(totals["builds"][0]), "build")
    return [f"No count changed: both build {functions} in {builds}, for the same causes."]


def _ordered(a: float, b: float) -> tuple[int, int, str, str]:
    """Return the higher number, the lower one, and which profile has each."""
    return (int(b), int(a), "B", "A") if b > a else (int(a), int(b), "A", "B")


def _moved_to_cache(change: FunctionChange) -> bool:
    a, b = change.a.counts, change.b.counts
    alike = all(a[name] == b[name] for name in ("builds", "traces", "lowers"))
    return alike and change.a.requests == change.b.requests and a["loads"] != b["loads"]


def _sentence(change: FunctionChange) -> str:
    function, a, b = change.function.shown, change.a, change.b
    if change.status == "new":
        return f"B builds {function}, which A does not: {_what(b)}."
    if change.status == "gone":
        return f"A builds {function}, which B does not: {_what(a)}."
    if a.requests != b.requests:
        return _more(change, "compiles", a.requests, b.requests)
    if a.counts["loads"] != b.counts["loads"]:
        high, low, more, fewer = _ordered(a.counts["loads"], b.counts["loads"])
        often = often_text(high - low)
        return f"{more} loads {function} {often} from the persistent cache where {fewer} compiles."
    for verb in VERBS:
        if a.counts[verb] != b.counts[verb]:
            return _more(change, verb, a.counts[verb], b.counts[verb])
    again = f"{function} is built as often"
    if a.causes != b.causes:
        return f"{again}, but for another cause{_cause(change, 'B')}."
    if a.settings != b.settings:
        differing = ", ".join(
            f"{name}: {a.settings.get(name, 'not given')} -> {b.settings.get(name, 'not given')}"
            for name in sorted({*a.settings, *b.settings})
            if a.settings.get(name) != b.settings.get(name)
        )
        return f"{again}, with other options ({differing})."
    code = a.sizes["code_bytes"] != b.sizes["code_bytes"]
    name, what = ("code_bytes", "bytes of code") if code else ("temp_bytes", "temporary bytes")
    return f"{again}, and has {b.sizes[name]:,} {what} in B, {a.sizes[name]:,} in A."


def _what(side: Counted) -> str:
    what = counted(side.requests, "compile")
    if not side.requests:
        what = counted(side.counts["traces"], "trace")
    return f"{what}, {seconds_text(side.total_s)}"


def _more(change: FunctionChange, verb: str, a: int, b: int) -> str:
    high, low, more, fewer = _ordered(a, b)
    seldom = often_text(low) if low else "not at all"
    text = f"{more} {verb} {change.function.shown} {often_text(high)}, {fewer} {seldom}"
    return f"{text}{_cause(change, more)}."


def _cause(change: FunctionChange, name: str) -> str:
    """Return the cause of most of the builds that one side has more, if it is known."""
    side, sign = (change.b, 1) if name == "B" else (change.a, -1)
    gained = {key: sign * count for key, count in change.gained.items() if sign * count > 0}
    if not gained:
        return ""
    key = max(gained, key=lambda key: (key[0] != "first", gained[key]))
    return f": {cause_text(*side.examples[key][0])}"


def listed(difference: ProfileDifference, every: bool = False) -> list[FunctionChange]:
    """Return the functions that a reader wants to see: not what is the same, nor JAX's own.

    JAX's own are many, and one number in the totals; `every` lists them and the others.
    """
    if every:
        return list(difference.changes)
    return [change for change in difference.changed if not change.function.eager]


def functions_table(changes: Sequence[FunctionChange]) -> pd.DataFrame:
    """Return functions with what is different in A and B: `1 -> 17`."""
    rows = []
    for change in changes:
        pairs = [(change.a.counts[name], change.b.counts[name]) for name in COUNTS]
        rows.append(
            [
                change.function.shown,
                "" if change.status == "changed" else change.status,
                *(str(a) if a == b else f"{a} -> {b}" for a, b in pairs),
                f"{seconds_text(change.a.total_s)} -> {seconds_text(change.b.total_s)}",
                ", ".join(f"{count:+} {cause_name(*key)}" for key, count in change.gained.items()),
            ]
        )
    return pd.DataFrame(rows, columns=["function", "", *COUNTS, "seconds", "causes"])


def totals_table(difference: ProfileDifference) -> pd.DataFrame:
    """Return the totals of A and B."""
    rows = []
    for name, (a, b) in difference.totals.items():
        if name.endswith("_s"):
            cells = [f"{name.removesuffix('_s')}, seconds", seconds_text(a), seconds_text(b), ""]
        else:
            change = f"{b - a:+,.0f}" if a != b else ""
            cells = [name.replace("code_bytes", "bytes of code"), f"{a:,}", f"{b:,}", change]
        rows += [cells] if a or b else []
    return pd.DataFrame(rows, columns=["together", "A", "B", "change"])


def facts_table(difference: ProfileDifference) -> pd.DataFrame:
    """Return what the two were recorded with, where it differs; one alone says nothing."""
    facts = difference.facts.items()
    rows = [[name, a, b] for name, (a, b) in facts if a != b and NOT_KNOWN not in (a, b)]
    return pd.DataFrame(rows, columns=["recorded with", "A", "B"])


def footer(difference: ProfileDifference) -> list[str]:
    """Return what is to be known of the numbers."""
    unknown = [name for name, (a, b) in difference.facts.items() if a != b and NOT_KNOWN in (a, b)]
    return [SECONDS, *([f"Recorded in one of the two only: {', '.join(unknown)}."] * bool(unknown))]


def document(difference: ProfileDifference) -> dict[str, Any]:
    """Return all of a difference, functions that are the same included."""
    return {
        "schema": SCHEMA,
        "answer": answer(difference),
        "warnings": list(warnings(difference)),
        "totals": _both(difference.totals),
        "facts": _both(difference.facts),
        "functions": [
            {
                **change.function.key._asdict(),
                "origin": change.function.function.origin,
                "status": change.status,
                "a": _document_of(change.a),
                "b": _document_of(change.b),
            }
            for change in difference.changes
        ],
    }


def _example(side: Counted, key: tuple[str, str]) -> dict[str, Any]:
    cause, built = side.examples[key][0]
    before, after = cause.values
    return {
        "kind": cause.kind,
        "argument": cause.argument,
        "before": before,
        "after": after,
        "sentence": sentence(cause, built),
        "remedy": remedy_text(cause.remedy),
        "remedy_id": cause.remedy.id if cause.remedy else "",
    }


def _both(pairs: dict[str, tuple[Any, Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "a": a, "b": b} for name, (a, b) in pairs.items()]


def _document_of(side: Counted) -> dict[str, Any]:
    causes = [
        {"kind": key[0], "argument": key[1], "builds": n, "example": _example(side, key)}
        for key, n in side.causes.items()
    ]
    return {**numbers(side), "settings": side.settings, "causes": causes}


def warnings(difference: ProfileDifference) -> Iterator[str]:
    """Yield what makes two profiles hard to compare, a sentence each."""
    for name, one in difference.damage:
        yield f"{name} is not whole: {damage_text(one)}"
    if difference.programs[0] != difference.programs[1]:
        yield "Two programs: A is {}, B {}.".format(
            *(shortened(program, 60) or "unknown" for program in difference.programs)
        )
    if difference.machines[0] != difference.machines[1]:
        yield "Two machines: A {}, B {}. Do not compare their seconds.".format(
            *(
                ", ".join(f"{host} ({cores} cores)" for host, cores in side)
                for side in difference.machines
            )
        )
