"""One isolated process that measures many cases of one workload and streams records.

Started by `process` as `python -m harness.engine.worker BOARD`, an open file that says what is
being measured. It imports as little as it can before JAX, because the import of JAX is one of the
numbers.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from harness.engine import channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.declare.workload import Workload
    from harness.engine.unit import Message, Unit

_clock = time.perf_counter_ns


def main() -> None:
    """Read a unit, measure it, and end."""
    unit_bytes = channel.read_job()
    stored = threading.Semaphore(0)
    channel.follow_parent(stored.release)
    begin = _clock()
    import jax

    import_ns = _clock() - begin

    from harness.engine import unit as protocol
    from harness.targets import topologies

    unit = protocol.decode_unit(unit_bytes)
    send = sender(stored)
    topology = None
    try:
        topologies.check_process(unit.target, unit.platforms, unit.environment)
        begin = _clock()
        jax.devices()
        if unit.description:
            topology = topologies.describe(unit.target, unit.description)
        backend_ns = _clock() - begin
        topologies.check_device(unit.target, unit.description)
    except RuntimeError as error:
        send(protocol.Fatal(f"JAX found no {unit.target} device: {error}"))
        return
    except topologies.Unusable as error:
        send(protocol.Fatal(str(error)))
        return
    from harness.engine.board import Board
    from harness.engine.session import Session
    from harness.engine.visiting import measure

    workload = workload_of(unit, send)
    if workload is None:
        return
    board = Board(int(sys.argv[1]))
    process_ns: dict[str, float] = {"import": import_ns, "backend": backend_ns}
    try:
        measure(Session(unit, workload, send, board, process_ns, topology))
    except topologies.Unusable as error:
        send(protocol.Fatal(str(error)))


def sender(stored: threading.Semaphore) -> Callable[[Message], None]:
    """Return what sends a message; after a record it waits until that is stored."""
    from harness.engine import unit as protocol

    def send(message: Message) -> None:
        channel.send(protocol.encode_message(message))
        if isinstance(message, protocol.Done):
            stored.acquire()  # storing it must not go on beside what is measured next

    return send


def workload_of(unit: Unit, send: Callable[[Message], None]) -> type[Workload] | None:
    """Return the class that a unit is about; None where it is not to be had, which is then said."""
    from harness.declare.workload import WorkloadError
    from harness.engine import unit as protocol
    from harness.records.failure import describe

    try:
        return protocol.workload_of(unit)
    except WorkloadError as error:
        send(protocol.Fatal(str(error)))
    except (Exception, SystemExit) as error:  # a user's module may even exit
        send(protocol.Fatal(f"importing {unit.source.module} raised {describe(error)}"))
    return None


if __name__ == "__main__":
    main()
    channel.end()
