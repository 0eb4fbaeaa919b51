"""A pool in this process: workers that carry errands out for real, and can be made to misbehave."""

from __future__ import annotations

import queue
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec

from harness.engine.context import Options, local_context
from harness.fleet import driving, place, remote, spool
from harness.fleet.errand import Report, decode_report, encode_errand
from harness.fleet.pool import Answers, Changed, Lost
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
        self.on_send = lambda errand, place: None
        """What a test does with an errand before it is carried out; what it returns is reported."""

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

    def send(self, errand, place):
        self.sent.append((place.worker, errand))
        said = self.on_send(errand, place)
        if said is not None:
            self.events.put(said)
            return
        real = msgspec.structs.replace(
            errand, expected=msgspec.structs.replace(errand.expected, machine=self.machine())
        )
        self.threads.submit(self.work, real)

    def work(self, errand):
        try:
            self.events.put(decode_report(remote.carry_out(encode_errand(errand))))
        except Exception as error:
            self.events.put(Lost(errand.id, repr(error)))

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


def done(errand):
    """Return the report of an errand that brought nothing."""
    return Report(errand.id, [])


def sweep(pool, workloads, results, folder, effort="1x1", **options):
    """Measure over a pool; return the outcome and the notes."""
    how = {name: options.pop(name) for name in ("each_machine",) if name in options}
    context = local_context(results, folder, "client")
    asked = Options(sampling.effort(effort), targets=("cpu",), **options)
    notes = []
    outcome = driving.sweep_on(
        pool, workloads, context, asked, on_note=notes.append, wait_s=0.0, **how
    )
    return outcome, notes
