"""Run all small programs, and print what was expected, what was found, and the score.

`--write` writes what is said of each to sentences.txt, which the tests compare with.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
import sys
from pathlib import Path

SENTENCES = Path(__file__).with_name("sentences.txt")


def main():
    """Print a table, or with `--json` a list; exit with 1 where a program was misjudged."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["JAX_NUM_CPU_DEVICES"] = "2"
    rows = results()
    if "--write" in sys.argv:
        SENTENCES.write_text(told(rows), encoding="utf-8")
    right = sum(row["right"] for row in rows)
    if "--json" in sys.argv:
        print(json.dumps(rows))
        return
    for row in rows:
        if row["right"] and "-v" not in sys.argv:
            print(f"  ok    {row['name']}")
            continue
        print(f"{'  ok' if row['right'] else '* WRONG'}  {row['name']}")
        for expected, found in row["pairs"]:
            print(f"        expected {expected or '-':50} found {found or '-'}")
        for sentence in row["sentences"]:
            print(f"          {sentence}")
    import jax

    builds = sum(row["builds"] for row in rows)
    print(f"jax {jax.__version__}: {right} of {len(rows)} programs right, {builds} builds")
    sys.exit(right < len(rows))


def told(rows):
    """Return what is said of each program's builds, without what another release or edit moves."""
    text = "".join(
        f"{row['name']}\n" + "".join(f"  {s}\n" for s in row["sentences"]) for row in rows
    )
    text = re.sub(r"\.py:\d+", ".py:LINE", text)
    return re.sub(r"<[a-z_.]+\.([AB])>", r"<\1>", text)


def results():
    """Return a row for each program."""
    import jax

    from tests.profiles.causes import programs

    for name in ("arguments", "objects", "surroundings"):
        importlib.import_module(f"{programs.__name__}.{name}")
    jax.jit(lambda: 0)()  # what a process pays for its first program is in no profile
    return [result(small) for small in programs.ALL]


def result(small):
    """Run one program under a profile of its own, and compare what it found with what is true."""
    import jax

    import harness
    from harness.profiles.decision.decide import decide

    jax.clear_caches()
    with harness.profile() as profile:
        small.run()
    causes = decide(profile.builds)
    found, sentences, others = [], [], []
    for built in profile.builds:
        cause = causes[built.process.file, built.line.id]
        text = f"{built.function.name}: {cause.kind} {cause.argument}".strip()
        if built.function.origin == "jax" and not small.operations:
            others.append(text)
            continue
        found.append(text)
        sentences.append(f"{cause.sentence} {cause.remedy}".strip())
    unexplained = [text for text in others if "unexplained" in text]
    failures = [line for process in profile.processes for line in process.ended.failures]
    return {
        "name": small.name,
        "right": tuple(found) == small.builds and not unexplained and not failures,
        "pairs": list(itertools.zip_longest(small.builds, [*found, *unexplained, *failures])),
        "sentences": sentences,
        "builds": len(found),
    }


if __name__ == "__main__":
    main()
