"""`harness cache doctor`: check a cache directory and repair it."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from click.exceptions import Exit
from packaging.version import InvalidVersion, Version

from harness.cache import put_cost as costs
from harness.cache.directory import (
    ATIME_SUFFIX,
    CACHE_SUFFIX,
    Directory,
    MissingCacheError,
    local_path,
    open_directory,
)
from harness.cache.doctor import diagnose
from harness.cache.finding import SETTLE_S, CacheFinding
from harness.cache.here import settings
from harness.cache.loads import load
from harness.cache.repair import repair as repair_entries
from harness.cache.survey import survey
from harness.cache.verify import verify as verify_entries
from harness.cli import options
from harness.cli.options import Argument, CacheDirectory, MaxSize, Option
from harness.cli.output import Heading, Output, Part
from harness.errors import HarnessError, UsageError
from harness.measure.lock import measuring
from harness.output import cache_doctor as words
from harness.targets.host import installed


@options.command(
    common="repair loading verify listed jax",
    context_settings={"allow_interspersed_args": True},
    program=Argument(
        metavar="[-- PROGRAM [ARG]...]",
        help="With --verify: a command, a .py file, -m MODULE or -c CODE.",
    ),
    verify=Option(
        metavar="N",
        min=0,
        help="Compile N entries of DIR again with PROGRAM, and compare. In a temporary folder; DIR "
        "is not changed.",
    ),
    repair=Option(help="Move bad entries into a folder in DIR. Adds missing times, too."),
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
        help="Also load each entry for CPUs, 1 ms each. In a separate process.",
    ),
    jax=Option(
        metavar="RELEASE",
        help="The JAX that will read the cache, such as 0.12.0.1; the one installed here "
        "without it. What is harmless depends on it.",
    ),
    listed=Option(
        "--names",
        metavar="CHECK",
        help="Only print the files of this check, for xargs -0.",
    ),
)
def doctor(
    *,
    directory: CacheDirectory,
    program: list[str] | None = None,
    verify: int = 0,
    repair: bool = False,
    max_size: MaxSize = -1,
    settle: float = SETTLE_S,
    put_cost: bool = True,
    scratch: Path | None = None,
    loading: bool = False,
    jax: str = "",
    listed: str = "",
    output: Output,
) -> None:
    r"""Check a cache directory and repair it.

    \b
      harness cache doctor ~/.cache/jax
      harness cache doctor ~/.cache/jax --load --repair    look closely, and repair
      harness cache doctor ~/.cache/jax --verify 20 -- python train.py

    What will JAX do with it, what is wrong, and what helps? Nothing is deleted. --repair moves what
    fails every reader (empty, torn, damaged, another program's, unloadable) into
    DIR/quarantine-TIME, where JAX does not look; the next run of a program compiles and writes it
    again. What any program still hits stays.

    Exit codes: 0 healthy, notes are fine, and so is an entry that may still be written; 1 a
    problem; 5 unusable: it cannot be read, or everyone on this machine can write to it; 2 wrong
    usage. With --repair, the state afterwards counts.
    """
    if bool(program) != bool(verify):
        raise UsageError(
            "--verify N and a program belong together: harness cache doctor DIR --verify 20 -- "
            "python train.py"
        )
    used = settings(max_size)
    try:
        place = open_directory(directory)
    except MissingCacheError as error:
        raise UsageError(f"{error} {words.threshold(used)} {words.SEE_WHY}") from None
    folder = local_path(place, "--repair") if repair else None
    seen = survey(place)
    cost, cost_line = None, ""
    if put_cost and not listed and (max_size >= 0 or seen.capped):
        try:
            with measuring(lambda waits: None, wait=False):
                cost = costs.measure(len(seen.entries), scratch)
            cost_line = words.cost_line(cost)
        except HarnessError as error:  # the other findings are worth having without it
            cost_line = str(error)
    loads = None
    if loading:
        readable = [one.name for one in seen.entries if one.contents.state == "readable"]
        loads = load(local_path(place, "--load"), readable)
    verified = None
    if program:
        verified = verify_entries(local_path(place, "--verify"), program, verify)
    check = functools.partial(
        diagnose,
        used=used,
        release=_release(jax),
        put_cost=cost,
        settle_s=settle,
        refused=dict(loads.refused) if loads else {},
        verified=verified.entries if verified else (),
    )
    before = after = check(seen)
    if listed:
        _print_names(place, before.findings, listed)
        return
    repaired = None
    if folder is not None:
        repaired = repair_entries(folder, seen.entries, before.findings)
        if repaired != type(repaired)():  # others may have changed it too: only another look tells
            seen = survey(place)
            after = check(seen)
    page = list(words.page(after, place.where, len(seen.entries)))
    done = list(words.repaired_lines(repaired, place.where)) if repaired else []
    # What was repaired comes first, and then what is left; where nothing was, that ends the page.
    answer, *rest = [*done, *page] if after is not before else [*page, *done]
    parts: list[Part] = [Heading(answer), *rest]
    if not seen.entries:
        parts.append(words.writes(before.here))
    parts += [cost_line] if cost_line else []
    parts += [words.loads_line(loads, len(seen.entries))] if loads else []
    parts += [words.verified_line(verified)] if verified else []
    document = {
        "schema": 2,
        "state": after.state,
        "here": before.here,
        "findings": before.findings,
        "put_cost": cost,
        "loads": loads,
        "verified": verified,
        "repaired": repaired,
    }
    output.show(parts, before.findings, document)
    if after.exit_code:
        raise Exit(after.exit_code)


def _release(given: str) -> str:
    try:
        return str(Version(given)) if given else installed("jax")
    except InvalidVersion:
        raise UsageError(f"--jax {given}: expected a release of JAX, such as 0.12.0.1.") from None


def _print_names(place: Directory, findings: Iterable[CacheFinding], check: str) -> None:
    """Print each file of a check's entries, ended by a zero byte, as names may hold anything."""
    if check not in words.TITLES:
        raise UsageError(f"--names {check}: expected one of {', '.join(words.TITLES)}.")
    folder = local_path(place, "--names").absolute()
    for finding in findings:
        for name in finding.entries if finding.check == check else ():
            for ending in (CACHE_SUFFIX, ATIME_SUFFIX):
                path = folder / (name + ending)
                if os.path.lexists(path):
                    sys.stdout.buffer.write(os.fsencode(path) + b"\0")
    sys.stdout.buffer.flush()
