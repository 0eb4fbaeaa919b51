"""A live comparison: rounds until every row is decided, or there may be no more of them."""

from __future__ import annotations

import contextlib
import hashlib
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from harness import __version__
from harness.errors import HarnessWarning
from harness.frame.load import frame_of
from harness.frame.pairs import Arm, pair
from harness.frame.ratios import LEAST_PROCESSES
from harness.jaxhooks.temporary import temporary_folder
from harness.measure.lock import measuring
from harness.measure.outcome import Progress, Turns, warn
from harness.records import json_file
from harness.records.git import commit_of
from harness.records.schema import Record
from harness.records.store import machine_folder
from harness.verdicts.compare import Comparison, judged_pairs
from harness.verdicts.judge import Terms
from harness.verdicts.live.arm import LiveArm, PreparedArm, differing_columns, prepared
from harness.verdicts.live.rounds import (
    STATE,
    LiveOptions,
    LiveState,
    Problem,
    Worker,
    difference_problems,
    may_be_decided,
    measure_round,
    next_look,
    round_records,
    share,
    with_equal_code,
)
from harness.workload.filters import Filters

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
    limit: int
    """How many there might have been."""
    spent_s: float
    """How long they took."""
    stopped: bool
    """Whether Ctrl-C ended them."""
    problems: Sequence[Problem]
    """What is wrong with the difference between the arms, by the first round."""


def compare_live(
    arms: tuple[LiveArm, LiveArm],
    options: LiveOptions,
    results: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    stored: tuple[pd.DataFrame, pd.DataFrame] | None = None,
    only: Sequence[str] = (),
) -> Rounds:
    """Measure two arms in turns until no row is open, and compare them as pairs.

    Looks at what there is after one round, for what is proven; at the clocks after 4 and after
    every 4 more, each look at its share of the error (:func:`harness.verdicts.live.rounds.share`);
    workloads with open rows go on.

    Ctrl-C ends it with the rounds that both arms have finished; without any, it is raised again.
    Asked the same again within a day, of the same code, it continues there, and measures nothing
    where that has ended.

    Args:
        arms: what is measured (:func:`harness.verdicts.live.arm.parse`).
        options: how.
        results: the tree that keeps the records, in `MACHINE/live/`, where :func:`harness.load`
            does not look, and that has the error rates; None throws the records away.
        on_progress: is told of every arm of every round.
        stored: the rows of both arms that were measured before, which those of `only` replace.
        only: the workloads that are measured, all that the options choose without any.

    Raises:
        UsageError: there is no such commit, or neither arm has one of the stages; others measure
            on this machine, and it is not to wait for them.
        HarnessError: an arm cannot be measured; the text says which, and why.
    """
    with contextlib.ExitStack() as stack:
        places = [stack.enter_context(prepared(arm, options.benchmarks)) for arm in arms]
        stack.enter_context(measuring(warn(on_progress)))  # nobody else between two arms either
        home = machine_folder(results, options.machine) / "live" if results else None
        asked = _asked(places, options, results, only)
        state, folder = _begun(asked, options.seed, home)
        folder = folder or Path(stack.enter_context(temporary_folder()))
        run = _Run(places, options, state, folder, on_progress, home, list(only))
        stack.callback(run.end)
        done = state.ended
        while True:
            look = next_look(state.rounds, run.limit)
            stopped = not done and run.goes_on_until(look)
            if state.rounds >= LEAST_PROCESSES and run.used > max(state.looks, default=0.0):
                state.looks.append(run.used)
            comparison = judged_pairs(
                pair(*run.arms(arms, stored), on=differing_columns(*arms)),
                results,
                filters=Filters(stage=options.filters.stage),
                terms=Terms(
                    share=(share(state.looks) if state.looks else 1.0) * (0.5 if stored else 1.0),
                    stored_share=0.5,
                ),
            )
            state.open = dict(Counter(worth_rounds(comparison.frame, state.looks)["workload"]))
            at_end = state.rounds >= run.limit or run.out_of_time
            state.ended = done or (not stopped and (at_end or not state.open))
            run.keep()
            if stopped or state.ended:
                return Rounds(
                    comparison,
                    run.records,
                    state.rounds,
                    folder,
                    run.limit,
                    state.spent_s,
                    stopped,
                    run.problems,
                )


def open_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison that more processes, or such in turns, can decide."""
    return frame[frame["needs"] != ""]


def worth_rounds(frame: pd.DataFrame, looks: Sequence[float]) -> pd.DataFrame:
    """Return the open rows that the rounds which are left may decide."""
    rows = open_rows(frame[frame["in_turns"]])
    looked = zip(rows["low"], rows["high"], rows["effect"], rows["n_a"], strict=True)
    return rows[np.array([may_be_decided(*one, looks) for one in looked], bool)]


@dataclass
class _Run:
    """A live comparison that is being measured."""

    places: Sequence[PreparedArm]
    options: LiveOptions
    state: LiveState
    folder: Path
    on_progress: Callable[[Progress], None]
    home: Path | None
    only: Sequence[str]

    def __post_init__(self) -> None:
        self.limit = self.options.effort.limit
        self.out_of_time = False
        self.workers: list[Worker] = []
        self.problems: list[Problem] = []
        self.records: Records = ([], [])
        for number in range(1, self.state.rounds + 1):
            self._add(round_records(self.folder / f"round-{number}", number))

    @property
    def used(self) -> float:
        """The part of the rounds, or of the time, that there may be which is used; at most 1."""
        of_time = self.state.spent_s / self.options.time_s if self.options.time_s else 0.0
        return 1.0 if self.out_of_time else min(1.0, max(of_time, self.state.rounds / self.limit))

    def arms(
        self, arms: Sequence[LiveArm], stored: tuple[pd.DataFrame, pd.DataFrame] | None
    ) -> tuple[Arm, Arm]:
        """Return both arms with the rows of all rounds, and those that were stored."""
        a, b = (
            pd.concat([*([stored[side]] if stored else []), rows], ignore_index=True)
            for side, rows in enumerate(frame_of(own).assign(in_turns=True) for own in self.records)
        )
        return Arm(arms[0].text, a), Arm(arms[1].text, b)

    def goes_on_until(self, rounds: int) -> bool:
        """Measure until there are so many rounds; return whether Ctrl-C stopped it."""
        try:
            for number in range(self.state.rounds + 1, rounds + 1):
                if self._lacks_time():
                    self.out_of_time = True
                    return False
                if self._start() or self.state.rounds == 1:
                    self._tell_length()
                began = time.monotonic()
                own, seed = self.folder / f"round-{number}", self.state.seed
                only = [*self.state.open] or self.only
                of_round = measure_round(self.workers, only, number, seed, own, self._told)
                self._add(of_round)
                self.state.rounds = number
                self.state.spent_s += time.monotonic() - began
                self.keep()
                self._told()
                if number == 1:
                    arms = [place.arm for place in self.places]
                    self.problems = list(difference_problems(arms, of_round))
        except KeyboardInterrupt:
            if not self.state.rounds:
                raise
            return True
        return False

    def _lacks_time(self) -> bool:
        """Tell whether another round, as long as those before, ends after the time there may be."""
        done, most_s = self.state.rounds, self.options.time_s
        return bool(done and most_s and self.state.spent_s * (1 + 1 / done) > most_s)

    def _start(self) -> bool:
        """Start the processes of both sides, where they have not been, and return whether."""
        if self.workers:
            return False
        for place, letter in zip(self.places, "AB", strict=True):
            self.workers.append(Worker(place, letter, self.options))
        for worker in self.workers:  # both have begun to import JAX
            worker.begin()
        return True

    def end(self) -> None:
        """End the processes of both sides."""
        for worker in self.workers:
            worker.end()

    def keep(self) -> None:
        """Write how far it is."""
        self.state.schema = json_file.SEALED
        json_file.write(self.folder / STATE, self.state)

    def _add(self, of_round: Records) -> None:
        trees = [place.tree for place in self.places]
        for kept, more in zip(self.records, with_equal_code(of_round, trees), strict=True):
            kept += more

    def _tell_length(self) -> None:
        """Tell how many rounds there may be, and what one took."""
        done = self.state.rounds
        turns = Turns(
            next_look(max(1, done), self.limit),
            self.limit,
            self.state.spent_s / done if done else None,
            self.options.time_s,
        )
        self.on_progress(Progress("", "", "", 0, 2 * done, 2 * self.limit, turns=turns))

    def _told(self, turn: int = 0, side: int | None = None) -> None:
        """Tell that an arm is measured, or that both of the last round are."""
        done = 2 * self.state.rounds + (0 if side is None else turn)
        number = self.state.rounds + (side is not None)
        rows = sum(self.state.open.values())
        label = f"round {number}" + (f", {rows} row{'s' * (rows > 1)} open" if rows else "")
        letter, what = ("", "done") if side is None else ("AB"[side], self.places[side].arm.text)
        self.on_progress(Progress(label, letter, what, number - 1, done, 2 * self.limit))


def _asked(
    places: Sequence[PreparedArm], options: LiveOptions, results: Path | None, only: Sequence[str]
) -> str:
    """Return a digest of what is measured, of which code, and how."""
    codes = [commit_of(place.tree, exclude=results) for place in places]
    arms = [
        (place.arm.text, place.arm.python, code.hash, code.dirty)
        for place, code in zip(places, codes, strict=True)
    ]
    how = (*astuple(options.effort)[-2:], options.time_s, str(options.benchmarks.resolve()))
    chosen = [sorted(one) for one in astuple(options.filters)]
    text = repr((__version__, arms, how, chosen, options.seed, sorted(only)))
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
        if state.asked == asked and young:
            return state, file.parent
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return LiveState(asked, seed, now_ms), home / f"{moment}-{seed}" if home else None
