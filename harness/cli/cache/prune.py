"""`harness cache prune`: remove what a cache can do without."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from harness.cache import ledger, removal
from harness.cache.directory import local_path, open_directory
from harness.cache.removal import Moved
from harness.cache.survey import Entry, Survey, survey
from harness.cli import options
from harness.cli.options import CacheDirectory, Option
from harness.cli.output import Heading, Output, Part, TextTable
from harness.errors import UsageError
from harness.records.printable import printable
from harness.records.units import ago, counted, size_text

SHOWN = 20
"""So many entries are listed."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)B?", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdwy])")
_TIMES_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31557600}


@options.command(
    max_size=Option(metavar="SIZE", help="As many go as leave this: 500MB, 10GB."),
    unused=Option(metavar="TIME", help="Not used for so long: 12h, 30d, 1y."),
    age=Option(metavar="TIME", help="Written so long ago."),
    target=Option(help="Made for a `cpu`, or for `other`: a GPU or TPU, which does not say."),
    jax=Option(metavar="RELEASE", help="Asked for by this JAX in one of --ledger."),
    ledgers=Option("--ledger", help="A ledger that --jax is looked up in; repeat for more."),
    keep=Option(help="A ledger whose entries stay, whatever else is said; repeat for more."),
    yes=Option(help="Remove them."),
)
def prune(
    *,
    directory: CacheDirectory,
    max_size: str = "",
    unused: str = "",
    age: str = "",
    target: str = "",
    jax: str = "",
    ledgers: list[Path] | None = None,
    keep: list[Path] | None = None,
    yes: bool = False,
    output: Output,
) -> None:
    r"""Remove what a cache can do without. Without --yes it only says what would go.

    \b
      harness cache prune DIR --max-size 10GB              the longest unused, until the rest fits
      harness cache prune DIR --unused 30d --yes           what nobody used for a month
      harness cache prune DIR --jax 0.10.2 --ledger runs/  what that release wrote, as ledgers tell

    \b
    Several limits: what meets all of them goes. It is safe beside running programs: an entry goes
    in one step, under JAX's own lock where there is a size cap, and one younger than a minute
    stays.

    Exit codes: 0 fine, also where nothing goes; 2 wrong usage; 5 the cache cannot be used.
    """
    if bool(jax) != bool(ledgers):
        raise UsageError(
            "--jax and --ledger belong together: an entry does not hold the release that wrote it, "
            "a ledger does."
        )
    if target not in ("", *removal.TARGETS):
        raise UsageError(f"--target {target}: expected {' or '.join(removal.TARGETS)}.")
    kept = _keys(keep or [])
    superfluous = functools.partial(
        removal.superfluous,
        max_size_bytes=_bytes(max_size) if max_size else None,
        unused_s=_seconds("--unused", unused),
        age_s=_seconds("--age", age),
        target=target,
        only=_keys(ledgers, jax) if ledgers else None,
        keep=kept,
    )
    if not any((max_size, unused, age, target, jax)):
        raise UsageError(
            "Nothing says what may go: give --max-size, --unused, --age, --target or --jax."
        )
    place = open_directory(directory)
    folder = local_path(place, "prune")
    seen = survey(place)
    if keep and seen.entries and kept.isdisjoint(entry.name for entry in seen.entries):
        raise UsageError(
            "--keep would keep nothing: its ledgers name none of the entries here. Give those of "
            "runs that used this directory, or leave --keep out."
        )
    going = superfluous(seen)
    moved = removal.remove(folder, going) if yes else None
    parts = _page(seen, going, moved)
    document = {"schema": 1, "directory": place.where, "superfluous": going, "removed": moved}
    output.show(parts, going, document)


def _page(seen: Survey, going: Sequence[Entry], moved: Moved | None) -> Iterator[Part]:
    rows = [
        {
            "module": printable(entry.module),
            "size": size_text(entry.size_bytes),
            "written": ago(seen.taken_at - entry.written_at),
            "last of use": ago(seen.taken_at - removal.used_at(entry)),
        }
        for entry in going[:SHOWN]
    ]
    whole = sum(entry.size_bytes for entry in seen.entries)
    gone = sum(entry.size_bytes for entry in going)
    rest = f"of {counted(len(seen.entries), 'file')} with {size_text(whole)} in {seen.directory}"
    if not going:
        yield f"Nothing is to go {rest}."
        return
    if moved is None:
        yield Heading(f"{len(going)} {rest} would go, {size_text(gone)}. --yes removes them.")
    else:
        left = size_text(whole - gone)
        yield Heading(f"{len(moved.names)} {rest} are removed: {left} are left.")
    yield TextTable(pd.DataFrame(rows), left=("written", "last of use"), wrapped=("module",))
    if len(going) > SHOWN:
        yield f"… and {len(going) - SHOWN} more; --format json gives all."
    if moved is not None and (moved.gone or moved.changed):
        yield f"{len(moved.gone)} were gone already, {len(moved.changed)} written anew, and stay."


def _keys(paths: Sequence[Path], jax: str = "") -> set[str]:
    events = [event for path in paths for event in ledger.read(path).events]
    if jax and not any(event.jax == jax for event in events):
        known = ", ".join(sorted({event.jax for event in events})) or "none"
        raise UsageError(f"--jax {jax} is in no ledger given. Releases there: {known}.")
    return {event.key for event in events if jax in ("", event.jax)}


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--max-size {text}: expected a size such as 500MB or 10GB.")
    return int(float(found[1]) * 1000 ** " kmgt".index(found[2].lower() or " "))


def _seconds(option: str, text: str) -> float | None:
    if not text:
        return None
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{option} {text}: expected a time such as 12h, 30d or 1y.")
    return float(found[1]) * _TIMES_S[found[2]]
