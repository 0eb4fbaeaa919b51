"""Ask workers what they are, and fetch what they keep; during a sweep, while others measure."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from harness.fleet import collecting, fitting
from harness.fleet.place import Question
from harness.fleet.pool import Answers, Pool


class Found(NamedTuple):
    """What workers answered."""

    asked: Mapping[str, str]
    """Who was asked: their addresses, and which of the workers that had each."""
    answers: Answers
    collected: int
    """Records of an earlier sweep that they kept, and that are stored now."""


class Asking:
    """Asks the workers of a pool for one sweep."""

    def __init__(self, pool: Pool, question: Question, results: Path) -> None:
        self.pool = pool
        self.question = question
        self.results = results
        self._found: queue.SimpleQueue[Found | Exception] = queue.SimpleQueue()
        self._open = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    def ask(self, workers: Mapping[str, str]) -> Found:
        """Ask, and wait for the answers.

        Raises:
            FleetError: the pool is gone.
            StoreError: the results folder cannot take what the workers keep; they still have it.
        """
        answers = self.pool.survey(self.question, sorted(workers))
        offsets_ms = {
            worker: fitting.correction_ms(ns) for worker, ns in answers.offsets_ns.items()
        }
        count = collecting.collect(
            self.pool, self.question.owner, self.results, list(workers), offsets_ms
        )
        return Found(workers, answers, count)

    def begin(self, workers: Mapping[str, str]) -> None:
        """Ask without waiting: one that is slow to answer must not keep the others idle."""
        self._open += 1
        threading.Thread(target=self._ask, args=(workers,), daemon=True).start()

    def _ask(self, workers: Mapping[str, str]) -> None:
        try:
            self._found.put(self.ask(workers))
        except Exception as error:  # raised again where the sweep is driven
            self._found.put(error)

    def answered(self) -> list[Found]:
        """Return what has been answered since this was last called; raises what `ask` does."""
        found = []
        while not self._found.empty():
            self._open -= 1
            one = self._found.get()
            if isinstance(one, Exception):
                raise one
            found.append(one)
        return found
