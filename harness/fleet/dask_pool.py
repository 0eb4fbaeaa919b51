"""Workers of a Dask scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from harness import __version__
from harness.errors import FleetError
from harness.fleet import dask_client, machine, remote, spool
from harness.fleet import place as places
from harness.fleet.messages import (
    Assignment,
    RecordLine,
    Result,
    decode_result,
    decode_told,
    encode,
)
from harness.fleet.place import Place, Question
from harness.fleet.pool import Answers, Changed, Event, Gone, Lost

LOOK_S = 1.0
"""How often the list of workers is looked at."""

ANSWER_S = 120.0
"""How long workers may take to say what they are: they import the workloads for it."""

CALL = "__import__('harness.fleet.remote', fromlist=['remote']).carry_out(assignment)"
"""What a task evaluates. The scheduler reads tasks as well, and need not have the harness: so they
must not hold a function of ours, and code objects would tie them to one version of Python."""

VERSION = "__import__('harness').__version__"


class DaskPool:
    """The workers of one scheduler, reached through a client of its own or of the caller's."""

    by_resources = True

    def __init__(self, address: str = "", client: Any = None, only: Collection[str] = ()) -> None:
        """Connect to `address`, or use `client`; of its workers `only` those, if any are named.

        Raises:
            FleetError: nobody answers there, or Dask is not installed.
        """
        self._own = client is None
        self.client = dask_client.connect(address) if client is None else client
        self.name = address or str(self.client.scheduler.address)
        self._only = set(only)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._flying: dict[str, tuple[Any, str, str]] = {}
        """Assignment to its future, its worker's address, and which of the workers that had it."""
        self._heard: Counter[str] = Counter()
        """Assignment to how many of its records have been told."""
        self._results: dict[str, Result] = {}
        """Results that were told, of assignments that Dask does not call finished yet."""
        self._known: dict[str, str] = {}
        """The workers that :meth:`workers` last returned."""
        self._looked = float("-inf")
        self._topic = ""

    def workers(self) -> dict[str, str]:
        """Return the addresses of the workers that the scheduler knows now, and their ids."""
        try:
            self._known = self._workers()
            return self._known
        except ConnectionError as error:
            raise FleetError(Gone(str(error)).text(self.name)) from error

    def _workers(self) -> dict[str, str]:
        found = dask_client.workers_of(self.client)
        return {
            address: str(info.get("id", ""))
            for address, info in found.items()
            if not self._only or self._only & {address, info.get("name"), info.get("host")}
        }

    def survey(self, question: Question, workers: Sequence[str]) -> Answers:
        """Ask workers what they are, even while they measure."""
        before = time.time_ns()
        asked = dask_client.each(
            self.client,
            _answer,
            places.encode_question(question),
            workers=workers,
            timeout_s=ANSWER_S,
        )
        after = time.time_ns()
        answers = Answers([], {}, {})
        for address, found in asked.items():
            if isinstance(found, bytes):
                try:
                    place = places.decode_place(found)
                except msgspec.MsgspecError:
                    answers.silent[address] = _of_version(places.decode_speaker(found).harness)
                    continue
                answers.places.append(place)
                answers.offsets_ns[address] = place.clock_ns - min(
                    max(place.clock_ns, before), after
                )
            else:
                answers.silent[address] = self._why_silent(address, found)
        return answers

    def send(self, assignment: Assignment, place: Place) -> None:
        """Send an assignment to one worker, which takes it as soon as its resource is free."""
        if not self._topic:
            # A scheduler keeps what was last said of a topic: one for each results tree is few.
            self._topic = f"harness/{assignment.owner}"
            self.client.subscribe_topic(self._topic, self._on_said)
        assignment.topic = self._topic
        address = place.worker
        future = self.client.submit(
            eval,
            CALL,
            {"assignment": encode(assignment)},
            key=f"harness-{assignment.id}",
            workers=[address],
            allow_other_workers=False,
            resources={assignment.job.target: 1},
            pure=False,
        )
        self._flying[assignment.id] = (future, address, self._known.get(address, ""))
        future.add_done_callback(lambda done: self._on_done(assignment.id, done))

    def next_events(self, timeout_s: float) -> Sequence[Event]:
        """Wait until records or results arrive, or workers come or go."""
        found: list[Event] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._events.get(timeout=timeout_s))
            while True:
                found.append(self._events.get_nowait())
        if self.client.status != "running":  # which cancels all that was on its way
            kept = [event for event in found if not isinstance(event, Lost)]
            return [*kept, Gone("the connection to it was lost")]
        for event in found:
            if isinstance(event, Result | Lost):
                self._flying.pop(event.assignment, None)
        return [*found, *self._look()]

    def fetch(self, owner: str, workers: Collection[str]) -> dict[str, dict[str, bytes]]:
        """Return what workers keep for `owner`."""
        found = dask_client.each(self.client, spool.fetch, owner, workers=workers)
        return {address: kept for address, kept in found.items() if isinstance(kept, dict)}

    def forget(self, owner: str, stored: dict[str, dict[str, int]]) -> None:
        """Let workers remove what has been stored; one that is gone keeps it for now."""
        if self.client.status != "running":
            return
        for address, orders in stored.items():
            if orders:
                dask_client.each(self.client, spool.forget, owner, orders, workers=[address])

    def stop(self, sweep: str) -> None:
        """End what is being measured for a sweep."""
        if self.client.status != "running":
            return
        futures = [future for future, _, _ in self._flying.values()]
        addresses = {address for _, address, _ in self._flying.values()}
        with contextlib.suppress(Exception):  # the scheduler may be what ended the sweep
            dask_client.each(self.client, remote.stop, sweep, workers=addresses, timeout_s=5.0)
            self.client.cancel(futures, force=True)

    def close(self) -> None:
        """Close the client, if it was made here."""
        if self._topic and self.client.status == "running":
            with contextlib.suppress(Exception):
                self.client.unsubscribe_topic(self._topic)
        if self._own:
            dask_client.close(self.client)

    def _why_silent(self, address: str, found: Any) -> str:
        """Say why a worker cannot describe itself: perhaps its harness is too old for that."""
        why = dask_client.why(found)
        if isinstance(found, TimeoutError):
            return why
        version = dask_client.each(self.client, eval, VERSION, workers=[address])[address]
        if not isinstance(version, str):
            return f"has no harness ({dask_client.why(version)}), and this is harness {__version__}"
        return _of_version(version) if version != __version__ else why

    def _look(self) -> list[Event]:
        if time.monotonic() - self._looked < LOOK_S:
            return []
        self._looked = time.monotonic()
        try:
            there = self._workers()
        except ConnectionError as error:
            return [Gone(str(error))]
        changed: list[Event] = [Changed()] if there != self._known else []
        for assignment, (future, address, since) in list(self._flying.items()):
            if there.get(address) != since:
                del self._flying[assignment]
                future.cancel(force=True)
                changed.append(Lost(assignment, "the worker was lost"))
        return changed

    def _on_said(self, event: Any) -> None:
        _, text = event
        said = decode_told(text)
        if isinstance(said, RecordLine):
            self._heard[said.assignment] += 1
            self._events.put(said)
        elif said.told == self._heard[said.assignment]:
            self._results[said.assignment] = said

    def _on_done(self, assignment: str, future: Any) -> None:
        told = self._results.pop(assignment, None)
        self._heard.pop(assignment, None)
        if future.status == "finished":
            try:
                self._events.put(told or decode_result(future.result()))
            except Exception as error:  # its worker was lost before it could be fetched
                self._events.put(Lost(assignment, dask_client.why(error)))
        elif future.status == "error":
            self._events.put(Lost(assignment, dask_client.why(future.exception())))
        else:
            self._events.put(Lost(assignment, f"Dask calls it {future.status}"))


async def _answer(question: bytes, dask_worker: Any = None) -> bytes:
    """Describe the worker that this runs in, beside its event loop."""
    machine.undo_nanny(dask_worker)
    resources = dict(dask_worker.state.total_resources)
    return await asyncio.to_thread(places.describe, question, dask_worker.address, resources)


def _of_version(version: str) -> str:
    return f"has harness {version}, and this is harness {__version__}"
