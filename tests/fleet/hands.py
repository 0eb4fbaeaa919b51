"""A pool in this process: workers that measure for real, and can be made to misbehave."""

from __future__ import annotations

import queue
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec

from harness.engine.context import Options, local_context
from harness.fleet import place, remote, spool
from harness.fleet.messages import Result, decode_result, encode
from harness.fleet.pool import Answers, Changed, Lost
from harness.fleet.sweep import sweep_on
from harness.stages import sampling


class Hands:
    """Workers that are threads. `changes` alters what one says of itself: worker to fields."""

    name = "hands"
    by_resources = True

    def __init__(self, changes):
        self.changes = changes
        self.there = {worker: "1" for worker in changes}
        self.events = queue.SimpleQueue()
        self.sent = []
        self.stopped = []
        self.threads = ThreadPoolExecutor()
        self.on_send = lambda assignment, place: None
        """What a test does with an assignment first; what it returns is what became of it."""

    def workers(self):
        return dict(self.there)

    def survey(self, question, workers):
        answers = Answers([], {}, {})
        for worker in workers:
            said = place.describe(place.encode_question(question), worker, {"cpu": 1})
            found = msgspec.structs.replace(place.decode_place(said), **self.changes[worker])
            answers.places.append(found)
            answers.offsets_ns[worker] = found.clock_ns - time.time_ns()
            if abs(answers.offsets_ns[worker]) < 60e9:
                answers.offsets_ns[worker] = 0
        return answers

    def send(self, assignment, place):
        self.sent.append((place.worker, assignment))
        said = self.on_send(assignment, place)
        if said is not None:
            self.events.put(said)
            return
        real = msgspec.structs.replace(
            assignment,
            expected=msgspec.structs.replace(assignment.expected, machine=self.machine()),
        )
        self.threads.submit(self.work, real)

    def work(self, assignment):
        try:
            self.events.put(decode_result(remote.carry_out(encode(assignment))))
        except Exception as error:
            self.events.put(Lost(assignment.id, repr(error)))

    def machine(self):
        from harness.records import environment

        return environment.machine_name()

    def next_events(self, timeout_s):
        try:
            return [self.events.get(timeout=timeout_s)]
        except queue.Empty:
            return []

    def come(self, worker, since="1", **changes):
        """Let a worker come, or come back as another one."""
        self.changes[worker] = changes
        self.there[worker] = since
        self.events.put(Changed())

    def fetch(self, owner, workers):
        return {worker: spool.fetch(owner) for worker in workers}

    def forget(self, owner, stored):
        for orders in stored.values():
            spool.forget(owner, orders)

    def stop(self, sweep):
        self.stopped.append(sweep)

    def close(self):
        self.threads.shutdown()


def done(assignment):
    """Return the report of an assignment that brought nothing."""
    return Result(assignment.id, [])


def sweep(pool, workloads, results, folder, effort="1x1", **options):
    """Measure over a pool; return the outcome and the notes."""
    how = {name: options.pop(name) for name in ("each_machine",) if name in options}
    context = local_context(results, folder, "client")
    asked = Options(sampling.effort(effort), targets=("cpu",), **options)
    notes = []
    outcome = sweep_on(pool, workloads, context, asked, on_note=notes.append, wait_s=0.0, **how)
    return outcome, notes
