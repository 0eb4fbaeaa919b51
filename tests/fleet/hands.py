"""A pool in this process: workers that measure for real, and can be made to misbehave."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from harness.engine.context import Options, local_context
from harness.fleet import order as orders
from harness.fleet import place
from harness.fleet.order import Result
from harness.fleet.sweep import sweep_on
from harness.fleet.workers import Seat
from harness.stages import sampling


class Hands:
    """Workers that are threads. `changes` alters what one says of itself: worker to fields."""

    name = "hands"
    chooses = True

    def __init__(self, changes, on_send=lambda order, worker: None):
        self.changes = changes
        self.seats = {worker: Seat("1", {"cpu": 1}) for worker in changes}
        self.sent = []
        self.stopped = []
        self.threads = ThreadPoolExecutor()
        self.on_ask = lambda workers: None
        self.on_send = on_send
        """What a test does with an order first; what it returns or raises is what became of it."""

    def workers(self):
        return dict(self.seats)

    def ask(self, address, question):
        return self.threads.submit(self.say, address, question)

    def say(self, worker, question):
        found = msgspec.msgpack.decode(place.answer(question), type=place.Place)
        self.on_ask(worker)
        return msgspec.msgpack.encode(msgspec.structs.replace(found, **self.changes[worker]))

    def submit(self, order, address, seat, target):
        asked = orders.decode_order(order)
        self.sent.append((address, asked))
        try:
            found = self.on_send(asked, address)
        except Exception as error:
            failed = Future()
            failed.set_exception(error)
            return failed
        if found is not None:
            return self.threads.submit(orders.pack, found)
        return self.threads.submit(self.work, asked)

    def work(self, asked):
        """Measure on this machine, whatever the worker has said of itself."""
        asked.host = place.host()
        return orders.carry_out(orders.pack(asked))

    def come(self, worker, since="1", **changes):
        """Let a worker come, or come back as another one."""
        self.changes[worker] = changes
        self.seats[worker] = Seat(since, {"cpu": 1})

    def stop(self, sweep, workers):
        self.stopped.append(sweep)


def done(order, worker):
    """Let an order bring nothing."""
    return Result()


def sweep(pool, workloads, results, folder, effort="1x1", **options):
    """Measure over a pool; return the outcome and the notes."""
    asked_of_fleet = ("each_machine", "store", "on_progress", "wait_s")
    how = {name: options.pop(name) for name in asked_of_fleet if name in options}
    level = effort if isinstance(effort, sampling.Effort) else sampling.effort(effort)
    context = local_context(results, folder, "client", options.pop("night", ""))
    asked = Options(level, **{"targets": ("cpu",), **options})
    notes, how = [], {"wait_s": 0.0, **how}
    outcome = sweep_on(pool, workloads, context, asked, on_note=notes.append, **how)
    return outcome, notes
