"""`harness cache doctor`: what ails a cache directory, and bad entries moved aside."""

from __future__ import annotations

import functools
import shlex
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.cache import app
from harness.cli.cache.options import AsJson, CacheDirectory, MaxSize
from harness.cli.cache.printing import print_json, print_lines
from harness.errors import HarnessError, UsageError

if TYPE_CHECKING:
    from harness.cache.findings import Diagnosis, Finding
    from harness.cache.put_cost import PutCost
    from harness.cache.quarantine import Moved

HELP = """Find what ails a cache, and say what to do about it.

\b
Exit codes: 0 healthy (notes are fine); 1 ailing; 5 unusable: it cannot be read, or everyone on
this machine can write to it; 2 wrong usage. With --quarantine, the state after the moving counts.

Nothing is ever deleted. --quarantine moves empty, torn, garbage and orphaned entries into
DIR/quarantine-TIME, where neither JAX nor this command looks; the next run of a program compiles
and writes them anew.
"""

PER_KIND = 10


@app.command("doctor", help=HELP)
def doctor(
    directory: CacheDirectory,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Move bad entries aside, into a folder in DIR.")
    ] = False,
    max_size: MaxSize = -1,
    settle: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.0,
            help="Only note, and leave, a bad entry younger than this: it may be being written.",
        ),
    ] = 10.0,
    put_cost: Annotated[
        bool,
        typer.Option(
            "--put-cost/--no-put-cost",
            help="Measure what a write costs at this number of entries, in a scratch directory.",
        ),
    ] = True,
    scratch: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to make the scratch directory: a folder on the cache's own file system "
            "gives its own cost. The system's temporary folder without it.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find what ails a cache, and say what to do about it."""
    from harness.cache import doctor as finder
    from harness.cache import entries
    from harness.cache import quarantine as aside
    from harness.cache.listing import LocalDirectory, open_directory

    place = open_directory(directory)
    local = isinstance(place, LocalDirectory)
    if quarantine and not local:
        raise UsageError(
            f"--quarantine moves files on this machine only, and {directory} is elsewhere. Move "
            "the entries with the bucket's own tool; the findings name them."
        )
    survey = entries.survey(place)
    cost, problem = _cost(len(survey.entries), scratch) if put_cost else (None, "")
    diagnose = functools.partial(
        finder.diagnose,
        local=local,
        put_cost=cost,
        capped=True if max_size >= 0 else None,
        settle_s=settle,
    )
    diagnosis = diagnose(survey)
    before, moved = diagnosis, None
    if quarantine and isinstance(place, LocalDirectory):
        bad = finder.to_quarantine(survey, diagnosis)
        moved = aside.move_aside(place.path, bad)
        if bad:  # others may have moved some, or written them anew: only another look can tell
            survey = entries.survey(place)
            diagnosis = diagnose(survey)
    if as_json:
        print_json({"diagnosis": before, "moved": moved, "state": diagnosis.state})
    else:
        _print_findings(before)
        print_lines([*_cost_lines(cost, problem), *_moved_lines(moved, place.where)])
        state = f"{diagnosis.state}{_young(diagnosis)}"
        print_lines([f"{place.where}: {len(survey.entries)} entries, {state}."])
    if diagnosis.exit_code:
        raise typer.Exit(diagnosis.exit_code)


def _cost(entries: int, scratch: Path | None) -> tuple[PutCost | None, str]:
    from harness.cache import put_cost

    try:
        return put_cost.measure(entries, scratch), ""
    except HarnessError as error:  # the other findings are worth having without it
        return None, str(error)


def _print_findings(diagnosis: Diagnosis) -> None:
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in diagnosis.findings:
        groups[finding.kind, finding.severity].append(finding)
    order = {"unusable": 0, "ailing": 1, "note": 2}
    for (kind, severity), findings in sorted(groups.items(), key=lambda item: order[item[0][1]]):
        print_lines([f"{severity}: {kind}" + (f" ({len(findings)})" if len(findings) > 1 else "")])
        for finding in findings[:PER_KIND]:
            name = f"{finding.entries[0]}: " if len(finding.entries) == 1 else ""
            print_lines([f"    {name}{finding.evidence}"])
        if len(findings) > PER_KIND:
            print_lines([f"    … and {len(findings) - PER_KIND} more; --json gives all."])
        print_lines([f"    → {remedy}" for remedy in dict.fromkeys(f.remedy for f in findings)])


def _young(diagnosis: Diagnosis) -> str:
    young = sum(not finding.settled for finding in diagnosis.findings)
    return f" but for {young} bad entries too young to judge: look again" if young else ""


def _cost_lines(cost: PutCost | None, problem: str) -> list[str]:
    if cost is None:
        return [problem] if problem else []
    scaled = (
        f" (measured at {cost.measured_entries}, in proportion)"
        if cost.measured_entries < cost.entries
        else ""
    )
    return [
        f"A write under a size cap costs {cost.capped_s * 1e3:.2f} ms at {cost.entries} entries"
        f"{scaled}, {cost.first_s * 1e3:.2f} ms at none; measured in {cost.where}, by JAX's own "
        "code, not in the cache."
    ]


def _moved_lines(moved: Moved | None, directory: str) -> list[str]:
    if moved is None:
        return []
    lines = []
    if moved.names:
        folder = shlex.quote(moved.folder)
        lines += [f"moved aside: {name}" for name in moved.names]
        lines += [
            f"{len(moved.names)} entries are now in {moved.folder}. The next run compiles and "
            "writes them anew. To bring them back:",
            f'    for f in {folder}/*; do mv -n "$f" {shlex.quote(directory)}/; done',
        ]
    else:
        lines.append("Nothing was moved aside.")
    if moved.gone:
        lines.append(f"{len(moved.gone)} bad entries were gone already: somebody else was faster.")
    if moved.changed:
        lines.append(
            f"{len(moved.changed)} bad entries were written anew in the meantime, and were left."
        )
    return lines
