"""A live comparison: rounds until every row is decided, or there may be no more of them."""

from __future__ import annotations

import contextlib
import hashlib
import random
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import pandas as pd

from harness import __version__
from harness.declare.filters import Filters
from harness.engine.lock import measuring
from harness.engine.outcome import Progress, warn
from harness.errors import HarnessWarning
from harness.frame.load import frame_of
from harness.records import json_file
from harness.records.git import commit_of
from harness.records.schema import Record
from harness.records.store import machine_folder
from harness.records.units import seconds_text
from harness.verdicts.arms import Arm
from harness.verdicts.compare import Comparison, comparison_between
from harness.verdicts.live.arm import LiveArm, PreparedArm, differing_columns, prepared
from harness.verdicts.live.rounds import (
    STATE,
    LiveOptions,
    LiveState,
    difference_problems,
    measure_round,
    next_look,
    round_records,
    share,
)
from harness.verdicts.rules import UNSURE
from harness.watch.temporary import temporary_folder

Records = tuple[list[Record], list[Record]]
"""Of each arm; their replicates are named by round."""

YOUNG_S = 24 * 3600
"""What was stopped is gone on with for so long: later the machine may be another."""


@dataclass(frozen=True)
class Rounds:
    """What came of the rounds of a live comparison."""

    comparison: Comparison
    records: Records
    rounds: int
    folder: Path
    """Of its records, by round and arm."""


def compare_live(
    arms: tuple[LiveArm, LiveArm],
    options: LiveOptions,
    results: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Rounds:
    """Measure two arms in turns until no row is open, and compare them as pairs.

    Looks at what there is after 4 rounds and after every 4 more, each look at its share of the
    error (:func:`harness.verdicts.live.rounds.share`); workloads with open rows go on.

    Ctrl-C ends it with the rounds that both arms have finished, and a warning; without any, it is
    raised again. Asked the same again within a day, of the same code, it goes on from there.

    Args:
        arms: what is measured (:func:`harness.verdicts.live.arm.parse`).
        options: how.
        results: the tree that keeps the records, in `MACHINE/live/`, where :func:`harness.load`
            does not look, and that has the error rates; None throws the records away.
        on_progress: is told of every arm of every round.

    Raises:
        UsageError: there is no such commit, or neither arm has one of the stages; others measure
            on this machine, and it is not to wait for them.
        HarnessError: an arm cannot be measured; the text says which, and why.

    Warns:
        HarnessWarning: nothing that is recorded differs between the arms, a variable did not
            reach JAX, other flags made the same programs, or it was stopped.
    """
    with contextlib.ExitStack() as stack:
        places = [stack.enter_context(prepared(arm, options.benchmarks)) for arm in arms]
        stack.enter_context(measuring(warn(on_progress)))  # nobody else between two arms either
        home = machine_folder(results, options.machine) / "live" if results else None
        state, folder = _begun(_asked(places, options, results), options.seed, home)
        folder = folder or Path(stack.enter_context(temporary_folder()))
        run = _Run(places, options, state, folder, on_progress)
        while True:
            stopped = run.goes_on_until(next_look(state.looks[-1] if state.looks else 0, run.limit))
            if state.rounds not in state.looks:
                state.looks.append(state.rounds)
            comparison = comparison_between(
                Arm(arms[0].text, frame_of(run.records[0])),
                Arm(arms[1].text, frame_of(run.records[1])),
                results,
                interleaved=True,
                filters=Filters(stage=options.filters.stage),
                on=differing_columns(*arms),
                share=share(state.looks, run.limit),
            )
            state.open = dict(Counter(open_rows(comparison.frame)["workload"]))
            state.ended = not stopped and (state.rounds == run.limit or not state.open)
            run.keep()
            if stopped:
                text = f"stopped: {state.rounds} of at most {run.limit} rounds are compared"
                more = "; the same command goes on" if results else ""
                warnings.warn(text + more, HarnessWarning, stacklevel=2)
            if stopped or state.ended:
                return Rounds(comparison, run.records, state.rounds, folder)


def open_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison that more processes can decide.

    Not those that are unsure because the environment alone changed: more would not tell.
    """
    return frame[(frame["verdict"] == UNSURE) & (frame["cause"] != "environment")]


@dataclass
class _Run:
    """A live comparison that is being measured."""

    places: Sequence[PreparedArm]
    options: LiveOptions
    state: LiveState
    folder: Path
    on_progress: Callable[[Progress], None]

    def __post_init__(self) -> None:
        self.limit = self.options.effort.limit
        self.records: Records = ([], [])
        for number in range(1, self.state.rounds + 1):
            self._add(round_records(self.folder / f"round-{number}", number))

    def goes_on_until(self, rounds: int) -> bool:
        """Measure until there are so many rounds; return whether Ctrl-C stopped it."""
        names = [f"^{re.escape(name)}$" for name in self.state.open] or self.options.filters.select
        try:
            for number in range(self.state.rounds + 1, rounds + 1):
                began = time.monotonic()
                own, seed = self.folder / f"round-{number}", self.state.seed
                of_round = measure_round(
                    self.places, self.options, names, number, seed, own, self._told
                )
                self._add(of_round)
                self.state.rounds = number
                self.keep()
                self._told(warning=self._length(time.monotonic() - began) if number == 1 else "")
                if number == 1:
                    arms = [place.arm for place in self.places]
                    for problem in difference_problems(arms, of_round):
                        warnings.warn(problem, HarnessWarning, stacklevel=3)
        except KeyboardInterrupt:
            if not self.state.rounds:
                raise
            return True
        return False

    def keep(self) -> None:
        """Write how far it is."""
        self.state.schema = json_file.SEALED
        json_file.write(self.folder / STATE, self.state)

    def _add(self, of_round: Records) -> None:
        for kept, more in zip(self.records, of_round, strict=True):
            kept += more

    def _length(self, round_s: float) -> str:
        """Return how long the rounds to come take, where each takes as long as the first."""
        look = next_look(0, self.limit)
        took, some, every = (seconds_text(round_s * n) for n in (1, look - 1, self.limit - 1))
        more = f", at most {every} for all {self.limit}" if self.limit > look else ""
        until = f", {some} until {look} are there and looked at{more}" if self.limit > 1 else ""
        return f"took {took}{until}"

    def _told(self, turn: int = 0, side: int | None = None, warning: str = "") -> None:
        """Tell that an arm is measured, or that both of the last round are."""
        done = 2 * self.state.rounds + (0 if side is None else turn)
        number = self.state.rounds + (side is not None)
        rows = sum(self.state.open.values())
        label = f"round {number}" + (f", {rows} row{'s' * (rows > 1)} open" if rows else "")
        letter, what = ("", "done") if side is None else ("AB"[side], self.places[side].arm.text)
        said = label, letter, what, number - 1, done, 2 * self.limit
        self.on_progress(Progress(*said, warning=warning))


def _asked(places: Sequence[PreparedArm], options: LiveOptions, results: Path | None) -> str:
    """Return a digest of what is measured, of which code, and how."""
    codes = [commit_of(place.tree, exclude=results) for place in places]
    arms = [
        (place.arm.text, place.arm.python, code.hash, code.dirty)
        for place, code in zip(places, codes, strict=True)
    ]
    how = (options.effort.limit, options.effort.passes, str(options.benchmarks.resolve()))
    chosen = [sorted(one) for one in astuple(options.filters)]
    text = repr((__version__, arms, how, chosen, options.seed))
    return hashlib.sha256(text.encode()).hexdigest()


def _begun(asked: str, seed: int | None, home: Path | None) -> tuple[LiveState, Path | None]:
    """Return the state of what was stopped and its folder, or a new one's."""
    now_ms = int(time.time() * 1000)
    for file in sorted(home.glob(f"*/{STATE}") if home else (), reverse=True):
        try:
            state = json_file.read(file, LiveState)
        except FileNotFoundError:
            continue
        except json_file.DamagedError as error:
            text = f"{file} is left out: {error}; what it tells of is not gone on with"
            warnings.warn(text, HarnessWarning, stacklevel=3)
            continue
        young = now_ms - state.begun_ms < YOUNG_S * 1000
        if state.asked == asked and young and not state.ended:
            return state, file.parent
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return LiveState(asked, seed, now_ms), home / f"{moment}-{seed}" if home else None
