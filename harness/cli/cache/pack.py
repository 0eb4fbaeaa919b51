"""`harness cache pack` and `unpack`: the entries that a program needs, carried in one file."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from click.exceptions import Exit

from harness.cache import ledger as ledgers
from harness.cache import pack as packs
from harness.cache.advice import DIRECTORY, EVERY
from harness.cache.pack import LeftOut, Manifest, Unpacked
from harness.cli import options
from harness.cli.options import Argument, CacheDirectory, Option
from harness.cli.output import Output, check_writable, notes, print_page
from harness.errors import ExitCode, UsageError
from harness.records.printable import printable
from harness.records.units import counted, seconds_text, size_text, some
from harness.targets.host import installed
from harness.watch import programs
from harness.watch.temporary import temporary_folder

SHOWN = 5
"""So many modules are named for each reason."""


@options.command(
    context_settings={"allow_interspersed_args": False},
    words=Argument(
        metavar="[PROGRAM [ARG]...]",
        help="What is run: a command, a .py file, -m MODULE or -c CODE, after --.",
    ),
    file=Option("--output", "-o", metavar="FILE", help="The pack."),
    ledger=Option(help="Run nothing: this ledger says what is needed."),
    directory=Option(
        metavar="DIR", help="The program's cache, where it and its environment set none."
    ),
)
def pack(
    *,
    words: list[str] | None = None,
    file: Path,
    ledger: Path | None = None,
    directory: Path | None = None,
) -> None:
    r"""Put the entries that a program needs into one file: it is run, and they are those.

    \b
      harness cache pack -o cache.zip -- python train.py --steps 1
      harness cache pack -o cache.zip --ledger run.jsonl

    \b
    Run here, the program writes every entry, however short its compile
    (JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0), unless that variable or the program says
    otherwise.
    Exit codes: 0; 6 packed, and something that it compiles is not in the file; 5 it used no cache;
    the program's own where it fails.
    """
    if bool(words) == (ledger is not None):
        raise UsageError(
            "Give either a program after --, or --ledger with the ledger of a run: "
            "harness cache pack -o cache.zip -- python train.py"
        )
    check_writable("--output", file)
    code = 0
    with temporary_folder() as folder:
        if ledger is None:
            ledger = Path(folder, "ledger.jsonl")
            code = programs.run_with_ledger(words or [], ledger, **_variables(directory))
        run = ledgers.read(ledger)
        if not run.events:
            notes.print(f"Nothing is packed: {ledgers.NO_REQUEST}", markup=False)
            raise Exit(code or ExitCode.NOTHING)
        manifest = packs.pack(run, file)
    print_page(_packed_lines(manifest, file), notes)
    raise Exit(code or (ExitCode.INCOMPLETE if manifest.left_out else ExitCode.FINE))


def _variables(directory: Path | None) -> dict[str, str]:
    wanted = dict(EVERY.variables)
    if directory is not None:
        wanted[DIRECTORY] = str(directory.resolve())
    return {name: value for name, value in wanted.items() if not os.environ.get(name)}


@options.command(
    file=Argument(metavar="FILE", help="What `pack` wrote."),
    jaxlib=Option(
        metavar="RELEASE",
        help="The jaxlib that will read the cache; the one installed here without it.",
    ),
)
def unpack(
    *,
    file: Path,
    directory: CacheDirectory,
    jaxlib: str = "",
    output: Output,
) -> None:
    r"""Unpack a cache where it is needed; each entry is verified first.

    \b
      harness cache unpack cache.zip ~/.cache/jax

    \b
    What no program could hit there is left out, and said: another jaxlib, another processor, a key
    that holds another path. What the directory has already stays. Programs may run meanwhile. An
    entry is code that JAX will run: unpack what you trust.
    Exit codes: 0; 6 something is left out; 2 no such file; 4 no pack; 5 DIR cannot be written.
    """
    if "://" in directory:
        raise UsageError(
            f"unpack writes to this machine only, and {directory} is elsewhere: unpack into a "
            "folder, and copy that with the bucket's own tool."
        )
    found = packs.unpack(file, Path(directory), jaxlib or installed("jaxlib"))
    document = {"schema": 1, "directory": directory, "unpacked": found}
    output.show(_unpacked_lines(found, directory), found.left_out, document)
    if found.left_out:
        raise Exit(ExitCode.INCOMPLETE)


def _packed_lines(manifest: Manifest, file: Path) -> Iterator[str]:
    entries = manifest.entries
    size = size_text(sum(one.size_bytes for one in entries))
    known_s = sum(one.compile_s or 0.0 for one in entries)
    spared = f", which took {seconds_text(known_s)} to compile" if known_s else ""
    number = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    yield f"{file}: {number}, {size}{spared}."
    yield from _left_out_lines(manifest.left_out)
    for path in sorted({one.path for one in entries if one.path}):
        yield (
            f"Their keys hold the path {path}: unpack them there, or set "
            "jax_persistent_cache_enable_xla_caches to none here and where they are used."
        )


def _unpacked_lines(found: Unpacked, directory: str) -> Iterator[str]:
    there = f", {len(found.there)} were there already" if found.there else ""
    yield f"{directory}: {counted(len(found.written), 'entry')} written{there}."
    yield from _left_out_lines(found.left_out)


def _left_out_lines(left_out: Iterable[LeftOut]) -> Iterator[str]:
    modules: dict[str, list[str]] = defaultdict(list)
    for one in left_out:
        modules[one.reason].append(printable(one.module))
    for reason, names in modules.items():
        yield f"left out: {some(names, SHOWN)}: {reason}"
