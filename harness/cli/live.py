"""The `--live` part of `harness compare`: both arms are measured now."""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

if TYPE_CHECKING:
    from harness.records.schema import Record
    from harness.verdicts.arms import Arm

INTERRUPTED = 130


class Measured(NamedTuple):
    """Two arms that took turns."""

    arms: tuple[Arm, Arm]
    on: tuple[str, ...]
    """Columns in which they differ by intention."""
    records: tuple[list[Record], list[Record]]
    """Of each arm, replicates named by round."""
    folder: Path
    """Where the records stay: in `RESULTS/MACHINE/live/`, where :func:`harness.load` does not look.
    """


def measure(
    a: str,
    b: str,
    *,
    select: Sequence[str] = (),
    cases: Sequence[str] = (),
    effort: str = "default",
    seed: int | None = None,
    benchmarks: Path = Path("benchmarks"),
    results: Path = Path("results"),
) -> Measured:
    """Measure two arms in turns, showing progress and warnings."""
    from harness.cli.progress import progress
    from harness.frame.load import frame_of
    from harness.records import environment
    from harness.stages import sampling
    from harness.verdicts import live
    from harness.verdicts.arms import Arm

    first, second = (live.parse(text, sys.executable) for text in (a, b))
    if seed is None:
        seed = random.SystemRandom().getrandbits(31)
    machine = environment.machine_name()
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{seed}"
    folder = results / machine / "live" / name
    options = live.LiveOptions(
        sampling.effort(effort), benchmarks, select, cases, seed, folder, machine
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with progress() as on_progress:
                records = live.run_live(a, b, options, on_progress)
        except KeyboardInterrupt:
            _say("interrupted before both arms had finished a round: nothing to compare.")
            raise typer.Exit(INTERRUPTED) from None
    for warning in caught:
        _say(str(warning.message))
    _say(f"records: {folder}")
    arms = Arm(a, frame_of(records[0])), Arm(b, frame_of(records[1]))
    return Measured(arms, live.differing_columns(first, second), records, folder)


def _say(text: str) -> None:
    print(f"harness: {text}", file=sys.stderr)
