"""Verdicts of a night: against the last good one, and of the newest release against the previous.

The comparing itself is `harness compare` on the two files of records, as a process of its own.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.nightly.commands import Runner, last_line
from harness.nightly.rows import records_of
from harness.nightly.state import Book, Environment, Night, Verdicts
from harness.records.schema import Problems, read_file

DECIDED = (0, 1, 4)
"""Exit codes of `harness compare`: nothing slower, something slower, nothing comparable."""


class JudgingFailed(HarnessError):
    """A comparison ended without verdicts; the night goes on."""


def pairs(book: Book, night: Night) -> list[tuple[str, tuple[Night, Environment], Environment]]:
    """Return what is to be compared: the kind, night and environment before, environment now."""
    found = []
    for now in night.measured():
        before = book.last_good(night, now.name)
        if before is not None:
            old = next(one for one in before.measured() if one.name == now.name)
            found.append(("night", (before, old), now))
    releases = sorted(
        (one for one in night.measured() if "dev" not in one.versions["jax"]), key=_release
    )
    if len(releases) > 1:
        found.append(("release", (night, releases[-2]), releases[-1]))
    return found


def compare(
    kind: str,
    before: tuple[Night, Environment],
    now: tuple[Night, Environment],
    book: Book,
    runner: Runner,
    results: Path,
) -> Verdicts:
    """Compare two environments of two nights, or of one.

    Raises:
        JudgingFailed: with what `harness compare` said last.
    """
    (old_night, old), (night, new) = before, now
    files = [records_of(results, n, e.env) for n, e in (before, now)]
    own = book.own(night.night)
    name = f"verdicts-{kind}-{new.name}.json"
    log = own / f"verdicts-{kind}-{new.name}.log"
    code = runner.run(
        [
            *(sys.executable, "-m", "harness", "compare", *map(str, files)),
            *("--results", str(results), "--format", "json", "-o", str(own / name)),
        ],
        log,
    )
    if code not in DECIDED or (code != 4 and not (own / name).is_file()):
        raise JudgingFailed(f"harness compare ended with {code}: {last_line(log)}")
    counts: dict[str, int] = {}
    for row in read_rows(own / name):
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    return Verdicts(
        environment=new.name,
        against=old_night.night if kind == "night" else old.name,
        kind=kind,
        noisy=old_night.noisy,
        difference=_difference(*files),
        commits=(old_night.commit, night.commit),
        counts=dict(sorted(counts.items())),
        file=name,
    )


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Return the rows that `harness compare` or `harness history` wrote as JSON; [] if none."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    rows = found.get("rows", []) if isinstance(found, dict) else found
    return [row for row in rows if isinstance(row, dict)]


def _difference(before: Path, after: Path) -> str:
    from harness.frame.environment_difference import environment_difference

    return environment_difference(_environment(before), _environment(after))


def _environment(file: Path) -> str:
    for record in read_file(file, Problems()):
        return bytes(record.environment).decode()
    return ""


def _release(found: Environment) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", found.versions["jax"])))
