"""Rounds: in each, both arms are measured once, in random order, each in processes of its own."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.engine.sweeping import Progress
from harness.errors import HarnessError, HarnessWarning
from harness.records import environment
from harness.records.schema import Record
from harness.records.store import Store, record_files
from harness.stages.sampling import Effort
from harness.verdicts.live.arm import Place, link_instrument, parse, prepared
from harness.verdicts.live.differing import difference_problems

_GOOD = (0, 3)
"""Exit codes of `harness run` after which there are records: fine, and some cases failed."""

_PATIENCE_S = 10.0


@dataclass(frozen=True)
class LiveOptions:
    """How a live comparison is run."""

    effort: Effort
    """`processes` is the number of rounds."""
    benchmarks: Path = Path("benchmarks")
    select: Sequence[str] = ()
    """Regular expressions for the names of workloads."""
    cases: Sequence[str] = ()
    """AXIS=VALUE, as for `harness run --case`."""
    seed: int = 0
    """Of the order of arms and of visits."""
    folder: Path | None = None
    """Where the records are kept, by round and arm; None throws them away."""
    machine: str = field(default_factory=environment.machine_name)


def run_live(
    a: str,
    b: str,
    options: LiveOptions,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> tuple[list[Record], list[Record]]:
    """Measure two arms in turns and return their records; replicates are named by round.

    Ctrl-C ends it with the rounds that both arms have finished, and a warning; without any, it is
    raised again.

    Args:
        a: what is measured, as :data:`harness.verdicts.live.arm.PARTS` says.
        b: the same for the other arm.
        options: how.
        on_progress: is told of every arm of every round.

    Raises:
        UsageError: an arm is described wrongly, or there is no such commit.
        HarnessError: an arm cannot be measured; the text says which, and why.

    Warns:
        HarnessWarning: nothing that is recorded differs between the arms, a variable did not
            reach JAX, other flags made the same programs, or it was stopped.
    """
    arms = [parse(text, sys.executable) for text in (a, b)]
    records: tuple[list[Record], list[Record]] = ([], [])
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="harness-live-")))
        instrument = scratch / "instrument"
        instrument.mkdir()
        link_instrument(instrument)
        places = [
            stack.enter_context(prepared(arm, options.benchmarks, instrument)) for arm in arms
        ]
        finished = 0
        try:
            for number, found in _rounds(places, options, scratch, on_progress):
                for kept, new in zip(records, found, strict=True):
                    kept += new
                if not finished:
                    for problem in difference_problems(arms, found):
                        warnings.warn(problem, HarnessWarning, stacklevel=2)
                finished = number
        except KeyboardInterrupt:
            if not finished:
                raise
            text = f"stopped: {finished} of {options.effort.processes} rounds are compared"
            warnings.warn(text, HarnessWarning, stacklevel=2)
    return records


def _rounds(
    places: Sequence[Place],
    options: LiveOptions,
    scratch: Path,
    on_progress: Callable[[Progress], None],
) -> Iterator[tuple[int, list[list[Record]]]]:
    """Yield the number of a round, from 1, and the records of both arms."""
    rng = random.Random(options.seed)
    rounds = options.effort.processes
    for number in range(1, rounds + 1):
        order = [0, 1]
        rng.shuffle(order)
        seed = rng.getrandbits(31)
        found: list[list[Record]] = [[], []]
        for turn, side in enumerate(order):
            place, letter = places[side], "AB"[side]
            done = 2 * (number - 1) + turn
            label = f"round {number}"
            on_progress(Progress(label, letter, place.arm.text, number - 1, done, 2 * rounds))
            results = (options.folder or scratch) / f"round-{number}" / letter.lower()
            _measure(place, letter, options, results, seed)
            found[side] = _read(results, number)
            if number == 1:
                _check(place, letter, found[side])
        on_progress(Progress(label, "", "done", number - 1, 2 * number, 2 * rounds))
        yield number, found


def _measure(place: Place, letter: str, options: LiveOptions, results: Path, seed: int) -> None:
    """Measure an arm once: `harness run` with one process per workload."""
    arm = place.arm
    command = [place.python, "-m", "harness", "run", "--fresh"]
    command += ["--effort", f"1x{options.effort.passes}", "--seed", str(seed)]
    command += ["--results", str(results.resolve()), "--machine", options.machine]
    command += ["--benchmarks", str(place.benchmarks)]
    command += [word for case in options.cases for word in ("--case", case)]
    command += ["--target", arm.target] if arm.target else []
    command += ["--scenario", arm.scenario] if arm.scenario else []
    command += ["--", *options.select]
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            command,
            cwd=place.folder,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        try:
            child.wait()
        finally:
            _end(child)
        if child.returncode in _GOOD:
            return
        if child.returncode == 130:  # it saw the same Ctrl-C, and sooner
            raise KeyboardInterrupt
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    raise _unmeasured(place, letter, lines[-1] if lines else f"exit code {child.returncode}")


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a run that was left early; its own processes end with it."""
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGINT)
    try:
        child.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _read(results: Path, number: int) -> list[Record]:
    """Return the records of a round, their replicates named by it."""
    found = [record for file in record_files(results) for record in Store(file).read()]
    return [
        msgspec.structs.replace(r, replicate=f"{r.replicate.rpartition('#')[0]}#{number}")
        for r in found
    ]


def _check(place: Place, letter: str, records: Sequence[Record]) -> None:
    if any(record.status == "ok" for record in records):
        return
    reasons = [record.reason for record in records if record.reason]
    raise _unmeasured(place, letter, reasons[0] if reasons else "nothing was measured")


def _unmeasured(place: Place, letter: str, reason: str) -> HarnessError:
    reason = reason.removeprefix("harness: ").rstrip(".")
    return HarnessError(f"Arm {letter} ({place.arm.text}) cannot be measured: {reason}.")
