"""A pool in this process: workers that measure for real, and can be made to misbehave."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from harness.engine.context import Options, local_context
from harness.fleet import remote
from harness.fleet.place import Place
from harness.fleet.pool import Seat
from harness.fleet.remote import Result
from harness.fleet.sweep import sweep_on
from harness.records import environment
from harness.records.schema import decode, encode
from harness.stages import sampling


class Hands:
    """Workers that are threads. `changes` alters what one says of itself: worker to fields."""

    name = "hands"
    chooses = True

    def __init__(self, changes):
        self.changes = changes
        self.seats = {worker: Seat("1", {"cpu": 1}) for worker in changes}
        self.sent = []
        self.stopped = []
        self.threads = ThreadPoolExecutor()
        self.on_ask = lambda workers: None
        self.on_send = lambda order, worker: None
        """What a test does with an order first; what it returns or raises is what became of it."""

    def workers(self):
        return dict(self.seats)

    def everywhere(self, workers, function, *arguments):
        return {worker: self.say(worker, function(*arguments)) for worker in workers}

    def say(self, worker, answer):
        if not isinstance(answer, Place):
            return answer
        self.on_ask(worker)
        return msgspec.structs.replace(answer, **self.changes[worker])

    def submit(self, order, address, target):
        asked = remote.decode_order(order)
        self.sent.append((address, asked))
        try:
            found = self.on_send(asked, address)
        except Exception as error:
            failed = Future()
            failed.set_exception(error)
            return failed
        if found is not None:
            return self.threads.submit(msgspec.json.encode, found)
        return self.threads.submit(self.work, asked)

    def work(self, asked):
        """Measure under the name that the worker has for the client."""
        machine, own = asked.job.base["machine"], environment.machine_name()
        asked.job.base["machine"] = own
        done = remote.decode_result(remote.carry_out(msgspec.json.encode(asked)))
        done.records = b"".join(renamed(line, machine) for line in done.records.splitlines())
        return msgspec.json.encode(done)

    def come(self, worker, since="1", **changes):
        """Let a worker come, or come back as another one."""
        self.changes[worker] = changes
        self.seats[worker] = Seat(since, {"cpu": 1})

    def stop(self, sweep, workers):
        self.stopped.append(sweep)


def renamed(line, machine):
    return encode(msgspec.structs.replace(decode(line), machine=machine))


DONE = Result()
"""An order that brought nothing."""


def sweep(pool, workloads, results, folder, effort="1x1", **options):
    """Measure over a pool; return the outcome and the notes."""
    how = {name: options.pop(name) for name in ("each_machine",) if name in options}
    context = local_context(results, folder, "client")
    asked = Options(sampling.effort(effort), targets=("cpu",), **options)
    notes = []
    outcome = sweep_on(pool, workloads, context, asked, on_note=notes.append, wait_s=0.0, **how)
    return outcome, notes
