"""`harness cache doctor`: what ails a cache directory, and bad entries moved aside."""

from __future__ import annotations

import functools
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from click.exceptions import Exit
from packaging.version import InvalidVersion, Version

from harness.cache import doctor as finder
from harness.cache import put_cost as costs
from harness.cache.ailment import SETTLE_S, CacheFinding
from harness.cache.directory import local_path, open_directory
from harness.cache.doctor import Diagnosis
from harness.cache.loads import Loads, load
from harness.cache.put_cost import PutCost
from harness.cache.quarantine import Moved, move_aside
from harness.cache.survey import survey
from harness.cli import options
from harness.cli.options import CacheDirectory, MaxSize, Option
from harness.cli.output import Heading, Output, Part
from harness.engine.lock import measuring
from harness.errors import HarnessError, UsageError
from harness.records.units import counted
from harness.targets.host import installed

PER_KIND = 10
"""So many findings of a kind are printed."""


@options.command(
    quarantine=Option(help="Move bad entries aside, into a folder in DIR."),
    settle=Option(
        metavar="SECONDS",
        min=0.0,
        help="A bad entry younger than this may still be written: report it, and leave it.",
    ),
    put_cost=Option(
        "--put-cost/--no-put-cost",
        help="Under a size cap, measure what a write costs at this number of entries, in a "
        "scratch directory.",
    ),
    scratch=Option(
        metavar="DIR",
        help="Where to make the scratch directory: a folder on the cache's own file system "
        "gives its own cost. The system's temporary folder without it.",
    ),
    loading=Option(
        "--load",
        help="Have XLA load each entry for CPUs, in a process of its own: about 1 ms each.",
    ),
    jax=Option(
        metavar="RELEASE",
        help="The JAX that will read the cache, such as 0.12.0.1; the one installed here "
        "without it. What is harmless depends on it.",
    ),
)
def doctor(
    *,
    directory: CacheDirectory,
    quarantine: bool = False,
    max_size: MaxSize = -1,
    settle: float = SETTLE_S,
    put_cost: bool = True,
    scratch: Path | None = None,
    loading: bool = False,
    jax: str = "",
    output: Output,
) -> None:
    r"""Find what ails a cache, and say what to do about it.

    \b
      harness cache doctor ~/.cache/jax
      harness cache doctor ~/.cache/jax --load --quarantine    look closely, and mend it

    Nothing is ever deleted. --quarantine moves what is proven bad (empty, torn, garbage, another
    program's, unloadable) into DIR/quarantine-TIME, where neither JAX nor this command looks; the
    next run of a program compiles and writes it anew. What a healthy run still hits stays.

    Exit codes: 0 healthy, notes are fine, and so is an entry that may still be written; 1 ailing;
    5 unusable: it cannot be read, or everyone on this machine can write to it; 2 wrong usage. With
    --quarantine, the state after the moving counts.
    """
    place = open_directory(directory)
    folder = local_path(place, "--quarantine") if quarantine else None
    seen = survey(place)
    cost, cost_line = None, ""
    capped = max_size >= 0 or seen.capped
    if put_cost and capped:
        try:
            with measuring(lambda waits: None, wait=False):
                cost = costs.measure(len(seen.entries), scratch)
            cost_line = _cost_line(cost)
        except HarnessError as error:  # the other findings are worth having without it
            cost_line = str(error)
    loads = None
    if loading:
        readable = [one.name for one in seen.entries if one.contents.state == "readable"]
        loads = load(local_path(place, "--load"), readable)
    diagnose = functools.partial(
        finder.diagnose,
        put_cost=cost,
        max_size_bytes=max_size,
        settle_s=settle,
        jax=_release(jax),
        refused=loads.refused if loads else {},
    )
    before = after = diagnose(seen)
    moved = None
    if folder is not None:
        bad = finder.to_quarantine(seen, before)
        moved = move_aside(folder, bad)
        if bad:  # others may have moved some, or written them anew: only another look can tell
            seen = survey(place)
            after = diagnose(seen)
    answer = f"{place.where}: {counted(len(seen.entries), 'entry')}, {_STATES[after.state]}."
    parts: list[Part] = [Heading(answer), *_findings(before), cost_line]
    parts += [_loads_line(loads, len(seen.entries)) if loads else ""]
    parts += _moved_lines(moved, place.where) if moved else ()
    document = {"schema": 1, "diagnosis": before, "moved": moved, "state": after.state}
    document["loads"] = loads
    output.show(filter(None, parts), before.findings, document)
    if after.exit_code:
        raise Exit(after.exit_code)


_STATES = {
    "healthy": "healthy",
    "empty": "so there is nothing to check",
    "unsettled": "some of which may still be written",
    "ailing": "ailing",
    "unusable": "unusable",
}


def _release(given: str) -> str:
    try:
        return str(Version(given)) if given else installed("jax")
    except InvalidVersion:
        raise UsageError(f"--jax {given}: expected a release of JAX, such as 0.12.0.1.") from None


def _loads_line(loads: Loads, entries: int) -> str:
    tried = loads.loaded + loads.unjudged + len(loads.refused)
    more = f", {loads.unjudged} want what this process lacks" if loads.unjudged else ""
    rest = f"; {entries - tried} are not for CPUs, or cannot be read" if entries > tried else ""
    return f"XLA loads {loads.loaded} of {tried} entries for CPUs{more}{rest}."


def _findings(diagnosis: Diagnosis) -> Iterator[str]:
    groups: dict[tuple[str, str], list[CacheFinding]] = defaultdict(list)
    for finding in diagnosis.findings:
        groups[finding.severity, finding.kind].append(finding)
    order = ("unusable", "ailing", "unsettled", "note")
    for (severity, kind), findings in sorted(groups.items(), key=lambda g: order.index(g[0][0])):
        yield f"{severity}: {kind}" + (f" ({len(findings)})" if len(findings) > 1 else "")
        for finding in findings[:PER_KIND]:
            name = f"{finding.entries[0]}: " if len(finding.entries) == 1 else ""
            yield f"    {name}{finding.evidence}"
        if len(findings) > PER_KIND:
            yield f"    … and {len(findings) - PER_KIND} more; --format json gives all."
        yield from (f"    → {remedy}" for remedy in dict.fromkeys(f.remedy for f in findings))


def _cost_line(cost: PutCost) -> str:
    scaled = cost.measured_entries < cost.entries
    how = f" (measured at {cost.measured_entries}, in proportion)" if scaled else ""
    return (
        f"A write under a size cap costs {cost.capped_s * 1e3:.2f} ms at {cost.entries} entries"
        f"{how}, {cost.first_s * 1e3:.2f} ms at none; measured in {cost.where}, by JAX's own "
        "code, not in the cache."
    )


def _moved_lines(moved: Moved, directory: str) -> Iterator[str]:
    if moved.names:
        yield from (f"moved aside: {name}" for name in moved.names)
        yield (
            f"{len(moved.names)} entries are now in {moved.folder}. The next run compiles and "
            "writes them anew. To bring them back:"
        )
        folder, back = shlex.quote(moved.folder), shlex.quote(directory)
        yield f'    for f in {folder}/*; do mv -n "$f" {back}/; done'
    else:
        yield "Nothing was moved aside."
    if moved.gone:
        yield f"{len(moved.gone)} bad entries were gone already: somebody else was faster."
    if moved.changed:
        yield f"{len(moved.changed)} bad entries were written anew in the meantime, and were left."
