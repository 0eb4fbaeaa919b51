"""Workers behind anything with the shape of `concurrent.futures.Executor`.

Such a pool does not say where a call will run. So several calls ask who answers; an assignment that
lands on a machine for which it was not meant comes back at once, and is sent again.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Collection, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from concurrent.futures import wait as wait_for

from harness.errors import FleetError
from harness.fleet import place as places
from harness.fleet import remote, spool
from harness.fleet.messages import Assignment, decode_result, encode
from harness.fleet.place import Place, Question
from harness.fleet.pool import Answers, Event, Gone, Lost

ASKED = 8
"""Calls that ask who answers, where an executor does not say how many workers it has."""

ANSWER_S = 300.0
"""How long the first answer may take: a pool may have to start its workers."""

ATTEMPTS = 100
"""How often an assignment that landed elsewhere is sent again."""

FORGET_S = 5.0
"""How long a sweep that is done waits for workers to remove what has been stored."""


class ExecutorPool:
    """The workers of an executor, one for each machine that answered."""

    by_resources = False

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.name = type(executor).__name__
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._attempts: dict[str, int] = {}
        self._flying: set[Future[bytes]] = set()
        self._stopped = False

    def workers(self) -> dict[str, str]:
        """Return nothing: an executor does not say."""
        return {}

    def survey(self, question: Question, workers: Sequence[str]) -> Answers:
        """Ask as many times as there may be workers, and keep one answer of each machine."""
        try:
            # Each answer about workloads costs a process that imports them.
            count = self._count()
            machines = {_key(place) for place, _ in self._ask(Question(question.owner, []), count)}
            found = self._ask(question, count if len(machines) > 1 else 1)
        except Exception as error:  # whatever an executor of somebody's raises
            raise FleetError(
                f"The executor {self.name} did not answer: {type(error).__name__}: {error}. "
                "Expected one that runs a function of the module harness.fleet on its workers."
            ) from error
        answers = Answers([], {}, {})
        for place, offset_ns in {_key(place): (place, ns) for place, ns in found}.values():
            answers.places.append(place)
            answers.offsets_ns[place.worker] = offset_ns
        return answers

    def _ask(self, question: Question, times: int) -> list[tuple[Place, int]]:
        """Return places, and how much the clock of each is ahead."""
        asked = places.encode_question(question)
        before = time.time_ns()
        futures = [self.executor.submit(places.describe, asked) for _ in range(times)]
        found = []
        for future in futures:
            place = places.decode_place(future.result(ANSWER_S))
            clock_ns = place.clock_ns
            found.append((place, clock_ns - min(max(clock_ns, before), time.time_ns())))
        return found

    def send(self, assignment: Assignment, place: Place) -> None:
        """Submit an assignment."""
        try:
            future = self.executor.submit(remote.carry_out, encode(assignment))
        except Exception as error:  # shut down, or broken
            self._events.put(Gone(f"{type(error).__name__}: {error}"))
            return
        self._flying.add(future)
        future.add_done_callback(lambda done: self._on_done(assignment, place, done))

    def next_events(self, timeout_s: float) -> Sequence[Event]:
        """Wait until results arrive."""
        found: list[Event] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._events.get(timeout=timeout_s))
            while True:
                found.append(self._events.get_nowait())
        return found

    def fetch(self, owner: str, workers: Collection[str]) -> dict[str, dict[str, bytes]]:
        """Return nothing: what a worker keeps is returned by the assignment for the same cases."""
        return {}

    def forget(self, owner: str, stored: dict[str, dict[str, int]]) -> None:
        """Let whoever answers remove what has been stored; the others are told by assignments."""
        orders = {order: size for found in stored.values() for order, size in found.items()}
        if orders and not self._stopped:
            asked = range(1 if len(stored) == 1 else self._count())
            wait_for([self.executor.submit(spool.forget, owner, orders) for _ in asked], FORGET_S)

    def stop(self, sweep: str) -> None:
        """End what is being measured for a sweep in this process, and what has not begun."""
        self._stopped = True
        remote.stop(sweep)
        for future in list(self._flying):
            future.cancel()

    def close(self) -> None:
        """Leave the executor to its owner."""

    def _count(self) -> int:
        return getattr(self.executor, "_max_workers", None) or ASKED

    def _on_done(self, assignment: Assignment, place: Place, future: Future[bytes]) -> None:
        self._flying.discard(future)
        try:
            result = decode_result(future.result())
        except BrokenExecutor as error:
            self._events.put(Gone(str(error)))
            return
        except BaseException as error:
            self._events.put(Lost(assignment.id, f"{type(error).__name__}: {error}"))
            return
        self._attempts[assignment.id] = self._attempts.get(assignment.id, 0) + 1
        if result.elsewhere and self._attempts[assignment.id] < ATTEMPTS and not self._stopped:
            time.sleep(0.05)
            self.send(assignment, place)
        else:
            self._attempts.pop(assignment.id)
            self._events.put(result)


def _key(place: Place) -> tuple[str, str, str]:
    return place.host, place.env, place.identity
