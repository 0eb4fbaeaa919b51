"""`harness cache advise`: which settings of the cache would save a program how much."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pandas as pd
from click.exceptions import Exit

from harness.cache import advice
from harness.cache.advice import Tried
from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import Heading, Output, Part, TextTable, say
from harness.engine.lock import measuring
from harness.errors import ExitCode
from harness.records.units import counted, ratio_text, seconds_text, size_text
from harness.watch import programs
from harness.watch.temporary import temporary_folder


@options.command(
    context_settings={"allow_interspersed_args": False},
    words=Argument(
        metavar="PROGRAM [ARG]...", help="A command, a .py file, -m MODULE or -c CODE, after --."
    ),
    starts=Option(min=1, help="Runs of each setting after the first."),
    seed=Option(help="Seed of the order of the settings."),
)
def advise(
    *,
    words: list[str],
    starts: int = 3,
    seed: int | None = None,
    output: Output,
) -> None:
    r"""Try what the cache would save a program: each setting, on a directory of its own.

    \b
      harness cache advise -- python train.py --steps 1
      harness cache advise --starts 5 --format markdown -o advice.md -- python train.py

    The program runs once to fill each directory, then --starts times on what that left, the
    settings in turns: let it do as little as a start needs. What it prints is not shown, and your
    own cache is not touched.

    Exit codes: 0 fine; 2 wrong usage; 3 the program failed; 4 it compiled nothing.
    """
    command = programs.command_of(words, "harness cache advise -- python train.py")
    with temporary_folder() as folder, measuring(say):
        tried = advice.advise(command, Path(folder), starts, say, seed)
    document = {"schema": 1, "settings": [dataclasses.asdict(one) for one in tried]}
    rows = [
        {"setting": one.setting.name, **msgspec.to_builtins(start)}
        for one in tried
        for start in one.later
    ]
    output.show(_page(tried), rows, document)
    if not tried[0].first.requests:
        raise Exit(ExitCode.NOTHING)


def _page(tried: Sequence[Tried]) -> Iterator[Part]:
    plain, *cached = tried
    yield Heading(_answer(plain, cached))
    rows = []
    for one in tried:
        whole_s = [start.whole_s for start in one.later]
        last = one.later[-1]
        rows.append(
            {
                "setting": one.setting.name,
                "first run": seconds_text(one.first.whole_s),
                "later runs": seconds_text(one.middle_s),
                "min–max": f"{seconds_text(min(whole_s))}–{seconds_text(max(whole_s))}",
                "of no cache": ratio_text(one.middle_s / plain.middle_s),
                "compiled": seconds_text(_median(one, "compile_s")),
                "loaded": seconds_text(_median(one, "load_s")),
                "hits": f"{last.hits} of {last.requests}",
                "size": size_text(one.size_bytes),
            }
        )
    yield TextTable(pd.DataFrame(rows))
    yield (
        f"Medians over {counted(len(plain.later), 'run')} on what the first run left, from start "
        "to end of the whole program."
    )
    for one in tried:
        sets = ", ".join(f"{name}={value}" for name, value in one.setting.variables.items())
        yield f"  {one.setting.name}: {sets or 'JAX_COMPILATION_CACHE_DIR alone'}"


def _answer(plain: Tried, cached: Sequence[Tried]) -> str:
    if not plain.first.requests:
        return "The program compiles nothing: no cache can save it anything."
    best = min(cached, key=lambda one: one.middle_s)
    if not best.is_faster(plain):
        compile_s = seconds_text(_median(plain, "compile_s"))
        return (
            "No setting saves more than the runs differ by. Without a cache a start takes "
            f"{seconds_text(plain.middle_s)}, of which {compile_s} are compiling."
        )
    saved_s = plain.middle_s - best.middle_s
    # The simplest of those that are not told apart from the best.
    simple = next(one for one in cached if not best.is_faster(one) and one.is_faster(plain))
    return (
        f"{simple.setting.name!r} saves {seconds_text(plain.middle_s - simple.middle_s)} of "
        f"{seconds_text(plain.middle_s)} at each start"
        + ("" if simple is best else f"; the most is {seconds_text(saved_s)}")
        + "."
        + (" That may be chance: give --starts 3." if len(plain.later) < 3 else "")
    )


def _median(one: Tried, name: str) -> float:
    return float(pd.Series([getattr(start, name) for start in one.later]).median())
