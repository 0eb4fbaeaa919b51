"""One isolated process that measures many cases of one workload and streams records.

Started by `process` as `python -m harness.engine.worker CHANNEL BOARD`, two open files: the
unit comes on standard input, messages go to CHANNEL, and BOARD says what is being measured. It
imports as little as it can before JAX, because the import of JAX is one of the numbers.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.declare.workload import Workload
    from harness.engine.unit import Message, Unit

_clock = time.perf_counter_ns


def main() -> None:
    """Read a unit, measure it, and end."""
    channel, board_fd = map(int, sys.argv[1:])
    os.dup2(2, 1)  # what a workload prints must not be mistaken for anything of ours
    unit_bytes = read_line()
    stored = threading.Semaphore(0)
    threading.Thread(target=listen, args=(stored,), daemon=True).start()
    begin = _clock()
    import jax

    import_ns = _clock() - begin

    from harness.engine import unit as protocol
    from harness.targets import topologies

    unit = protocol.decode_unit(unit_bytes)
    send = sender(channel, stored)
    topology = None
    try:
        topologies.check_variables(unit)
        begin = _clock()
        jax.devices()
        if unit.description:
            topology = topologies.describe(unit.target, unit.description)
        backend_ns = _clock() - begin
        topologies.check_device(unit)
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
    board = Board(board_fd)
    process_ns: dict[str, float] = {"import": import_ns, "backend": backend_ns}
    try:
        measure(Session(unit, workload, send, board, process_ns, topology))
    except topologies.Unusable as error:
        send(protocol.Fatal(str(error)))


def read_line() -> bytes:
    """Read the unit; nothing follows its newline before this process has sent a record."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(0, 1 << 16)
        if not chunk:
            os._exit(1)
        line += chunk
    return line


def listen(stored: threading.Semaphore) -> None:
    """Hear that a record is stored; end when the process that asked for the work is gone."""
    while os.read(0, 1):
        stored.release()
    os._exit(1)


def sender(channel: int, stored: threading.Semaphore) -> Callable[[Message], None]:
    """Return what sends a message; after a record it waits until that is stored."""
    from harness.engine import unit as protocol

    def send(message: Message) -> None:
        write(channel, protocol.encode_message(message) + b"\n")
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


def write(channel: int, data: bytes) -> None:
    """Write all of a message."""
    view = memoryview(data)
    while view:
        view = view[os.write(channel, view) :]


def end(code: int) -> NoReturn:
    """End this process at once."""
    sys.stderr.flush()
    os._exit(code)  # backends may hang in their own exit handlers


if __name__ == "__main__":
    main()
    end(0)
