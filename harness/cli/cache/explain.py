"""`harness cache explain`: why a compile of the second run found, or missed, the first's entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from click.exceptions import Exit

from harness.cache.explain import Explained, changed_settings, explain_runs
from harness.cache.ledger import read
from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import Heading, Output, Part
from harness.errors import ExitCode
from harness.records.units import counted, some

MOST_NAMES = MOST_SHOWN = 3
"""So many modules of one verdict are named, and so many verdicts shown line by line."""


@options.command(
    a=Argument(metavar="A", help="The ledger of the run that compiled."),
    b=Argument(metavar="B", help="The ledger of the run that missed."),
    everything=Option("--all", help="Show the modules that hit as well, and all lines."),
)
def explain(*, a: Path, b: Path, everything: bool = False, output: Output) -> None:
    r"""Say, module by module, which part of the key changed between two runs, and how.

    \b
      harness cache ledger -o a.jsonl -- python train.py
      harness cache ledger -o b.jsonl -- python train.py
      harness cache explain a.jsonl b.jsonl

    Exit codes: 0 fine; 2 wrong usage; 4 no compile request.
    """
    runs = read(a), read(b)
    modules = explain_runs(*runs)
    shown = [one for one in modules if everything or one.status != "hit"]
    asked = [one.status == "hit" for one in modules if one.b is not None]
    parts: list[Part] = [Heading(f"{sum(asked)} of {counted(len(asked), 'module')} hit.")]
    if settings := changed_settings(*runs):
        parts.append(f"Set otherwise in the second run: {'; '.join(settings)}.")
    parts += _page(shown, everything)
    for path, run in zip((a, b), runs, strict=True):
        keyless = [event for event in run.events if not event.key]
        if keyless:
            parts.append(f"{path}: {len(keyless)} requests had no key: {keyless[0].detail}")
    rows = [{"module": o.module, "status": o.status, "verdict": o.verdict} for o in shown]
    output.show(parts, rows, shown)
    if not modules:
        raise Exit(ExitCode.NOTHING)


def _page(shown: Iterable[Explained], everything: bool) -> Iterator[str]:
    """Yield the lines of each verdict, with all modules that have it, as after an upgrade.

    Those whose compiles cost the second run the most seconds come first.
    """
    alike: dict[Any, list[Explained]] = {}
    for one in shown:
        was = one.a.module if one.a is not None and one.a.module != one.module else ""
        alike.setdefault((one.verdict, one.differences, was and one.module), []).append(one)
    left = 0
    dear = sorted(alike.items(), key=lambda group: -sum(map(_compile_s, group[1])))
    for (verdict, differences, renamed), every in dear:
        names = Counter(one.module for one in every).items()
        named = [name if times == 1 else f"{name} (× {times})" for name, times in names]
        yield f"{some(named, MOST_NAMES)}: {verdict}"
        if renamed and every[0].a is not None:
            yield f"    was {every[0].a.module}"
        left += bool(differences)
        for difference in differences if everything or left <= MOST_SHOWN else ():
            yield f"  {difference.component}"
            yield from (f"    {line}" for line in difference.lines)
    if left > MOST_SHOWN and not everything:
        yield f"The lines of {left - MOST_SHOWN} more are shown with --all."


def _compile_s(one: Explained) -> float:
    return one.b.compile_s or 0.0 if one.b is not None else 0.0
