"""What a profile says of programs of kinds that it once answered wrong, against what is right.

    python -m tools.profile_cases [NAME ...]

A case is right if the causes of its function are those expected, the remedy says what it must and
nothing that it must not, and the remedy of the first finding is whole in 24 lines of 80 and of 120
characters. The exit code is the number of those that are wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from typing import Any

import jax

import harness
from harness.output.profile_findings import finding_texts
from tools.profile_cases import cases
from tools.profile_cases.cases import Case

WIDTHS = (80, 120)


def judged(case: Case) -> list[str]:
    """Return what is otherwise than expected."""
    jax.clear_caches()
    with harness.profile(sample_ms=0) as profile:
        case.run()
    found = finding_texts(profile)
    wrong = [f"{one} is reported" for one in case.never if any(one in f.remedy for f in found)]
    if case.causes[0][0] == "eager":
        mine = [one for one in found if case.causes[0][1] in one.text and one.remedy]
        remedies, places = [one.remedy for one in mine], [f"{one.text} {one.place}" for one in mine]
        if not mine:
            wrong.append(f"no such finding in {[one.text for one in found]}")
    else:
        rows = [row for row in of_function(case, profile) if row["cause"] != "first"]
        causes = {(row["cause"], row["argument"]) for row in rows}
        if not all(any(alike(want, one) for one in causes) for want in case.causes) or len(
            causes
        ) != len(case.causes):
            wrong.append(f"causes: {sorted(causes)}, expected {case.causes}")
        mine = [one for one in found if one.finding.cause]
        kinds = {one.remedy: one.finding.cause.kind for one in mine}
        remedies = [remedy for remedy, kind in kinds.items() if kind == case.causes[0][0]]
        places = [f"{one.text} {one.place}" for one in mine]
    if case.says and not any(all(piece in one for piece in case.says) for one in remedies):
        wrong.append(f"remedy: {remedies}, expected {case.says}")
    if case.place and not any(case.place in one for one in places):
        wrong.append(f"place: {places}, expected {case.place}")
    return wrong + cut(profile, found)


def alike(want: tuple[str, str], one: tuple[str, str]) -> bool:
    """Return whether a cause is that, or of a part of its argument."""
    return want[0] == one[0] and (want[1] == one[1] or one[1].startswith(f"{want[1]}."))


def of_function(case: Case, profile: Any) -> list[dict[str, Any]]:
    """Return the rows of the table of causes that are of the case's function."""
    rows = profile.frame("causes").to_dict("records")
    return [row for row in rows if row["function"] == case.function]


def cut(profile: Any, found: list[Any]) -> list[str]:
    """Return at which widths the first finding with a remedy is not whole."""
    first = next((one for one in found if one.remedy), None)
    wrong = []
    for width in WIDTHS:
        lines = profile.summary(width=width)
        words = " ".join(" ".join(lines).split())
        if first is not None and not (first.text in words and first.remedy in words):
            wrong.append(f"at {width} columns the first finding is cut: {words}")
        if any(len(line) > width for line in lines if "harness" not in line):
            wrong.append(f"a line is longer than {width}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="these cases only")
    options = parser.parse_args()
    jax.config.update("jax_platforms", os.environ.get("JAX_PLATFORMS", "cpu"))
    jax.jit(lambda: 0)()
    rows: defaultdict[str, list[bool]] = defaultdict(list)
    for case in cases.ALL:
        if options.names and case.name not in options.names:
            continue
        wrong = judged(case)
        rows[case.row].append(not wrong)
        for one in wrong:
            print(f"WRONG {case.name}: {one}", flush=True)
    for row, right in rows.items():
        print(f"{row:26}{sum(right)} of {len(right)} right")
    right = [one for several in rows.values() for one in several]
    print(f"jax {jax.__version__}: {sum(right)} of {len(right)} cases right")
    sys.exit(len(right) - sum(right))


if __name__ == "__main__":
    main()
