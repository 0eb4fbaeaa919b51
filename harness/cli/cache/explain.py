"""`harness cache explain`: why a compile of the second run found, or missed, the first's entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from click.exceptions import Exit

from harness.cache.explain import Explained, changed_settings, explain_runs
from harness.cache.ledger import Requests, read
from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import Heading, Output, Part, notes
from harness.errors import ExitCode
from harness.jaxhooks.events import Request
from harness.output.cache import reason_text
from harness.output.explain import label, lines, settings_text, verdict
from harness.records.units import counted, some

MOST_NAMES = MOST_SHOWN = 3
"""So many modules of one verdict are named, and so many verdicts shown line by line."""


@options.command(
    common="everything format_",
    a=Argument(metavar="A", help="The run that compiled: a ledger, or the folder of a profile."),
    b=Argument(metavar="[B]", help="The run that missed; without it, A alone."),
    everything=Option("--all", help="Show the modules that hit as well, and all lines."),
)
def explain(*, a: Path, b: Path | None = None, everything: bool = False, output: Output) -> None:
    r"""Which part of each module's key changed between two runs, and how?

    \b
      harness cache ledger -o a.jsonl -- python train.py
      harness cache ledger -o b.jsonl -- python train.py
      harness cache explain a.jsonl b.jsonl

    Without B: why each request of A left no entry.

    Exit codes: 0 fine; 2 wrong usage; 4 no compile request.
    """
    runs = [read(path) for path in (a, b) if path is not None]
    for path, run in zip((a, b), runs, strict=False):
        if run.broken_lines:
            notes.print(f"{path}: left out {counted(run.broken_lines, 'damaged line')}.")
    if len(runs) == 1:
        _alone(runs[0], output)
        return
    modules = explain_runs(*runs)
    shown = [one for one in modules if everything or not one.hit]
    asked = [one.hit for one in modules if one.b is not None]
    parts: list[Part] = [Heading(f"{sum(asked)} of {counted(len(asked), 'module')} hit.")]
    if settings := changed_settings(*runs):
        parts.append(settings_text(settings))
    parts += _page(shown, everything)
    for path, run in zip((a, b), runs, strict=True):
        keyless = [event for event in run.events if not event.key]
        if keyless:
            reason = reason_text(keyless[0].reason, keyless[0].detail, keyless[0].limit)
            parts.append(f"{path}: {counted(len(keyless), 'request')} had no key: {reason}")
    rows = [
        {
            "module": one.module,
            "status": one.why.status,
            "reason": one.why.reason,
            "changes": ", ".join(dict.fromkeys(change.kind for change in one.why.changes)),
            "verdict": verdict(one.why),
        }
        for one in shown
    ]
    output.show(parts, rows, shown)
    if not modules:
        raise Exit(ExitCode.NOTHING)


def _alone(run: Requests, output: Output) -> None:
    """Show why requests of one run left no entry."""
    groups: dict[str, list[Request]] = {}
    for event in run.events:
        if event.outcome in ("unwritten", "failed"):
            reason = event.reason or event.outcome
            groups.setdefault(reason_text(reason, event.detail, event.limit), []).append(event)
    left = sum(map(len, groups.values()))
    hits = sum(event.outcome == "hit" for event in run.events)
    count = counted(len(run.events), "request")
    parts: list[Part] = [Heading(f"{hits} of {count} hit; {left} left no entry.")]
    slow = sorted(groups.items(), key=lambda group: -sum(one.compile_ns for one in group[1]))
    for reason, events in slow:
        parts.append(f"{some([one.module for one in events], MOST_NAMES)}: {reason}")
    rows = [
        {"module": one.module, "outcome": one.outcome, "reason": one.reason, "detail": one.detail}
        for one in run.events
    ]
    output.show(parts, rows)
    if not run.events:
        raise Exit(ExitCode.NOTHING)


def _page(shown: Iterable[Explained], everything: bool) -> Iterator[str]:
    """Yield the lines of each cause, with all modules that have it, as after an upgrade.

    Those whose compiles cost the second run the most seconds come first.
    """
    alike: dict[Any, list[Explained]] = {}
    for one in shown:
        was = one.a.module if one.a is not None and one.a.module != one.module else ""
        alike.setdefault((one.why, one.differences, was and one.module), []).append(one)
    left = 0
    slow = sorted(alike.items(), key=lambda group: -sum(map(_compile_ns, group[1])))
    for (why, differences, renamed), every in slow:
        names = Counter(one.module for one in every).items()
        named = [name if times == 1 else f"{name} (× {times})" for name, times in names]
        yield f"{some(named, MOST_NAMES)}: {verdict(why)}"
        if renamed and every[0].a is not None:
            yield f"    was {every[0].a.module}"
        left += bool(differences)
        for difference in differences if everything or left <= MOST_SHOWN else ():
            yield f"  {label(difference.part)}"
            yield from (f"    {line}" for line in lines(difference))
    if left > MOST_SHOWN and not everything:
        yield f"The lines of {left - MOST_SHOWN} more are shown with --all."


def _compile_ns(one: Explained) -> int:
    return one.b.compile_ns if one.b is not None else 0
