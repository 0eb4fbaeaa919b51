"""One isolated process that measures one side of a comparison and streams records.

Started by :mod:`harness.engine.process` as `python -m harness.sides.worker BOARD`; the
protocol is that of `worker`. The environment is verified, and the process kept to its
cores, before NumPy or JAX are imported: both read their variables, and count cores, when they are.
"""

from __future__ import annotations

import sys
import threading

from harness.engine import channel, worker
from harness.sides import threads as rules
from harness.sides import variables
from harness.targets.host import affinity


def main() -> None:
    """Read a unit, measure it, and end."""
    unit_bytes = channel.read_job()
    board_fd = int(sys.argv[1])

    from harness.engine import unit as protocol

    unit = protocol.decode_unit(unit_bytes)
    problems = variables.problems(unit.environment)
    labels = rules.pin(unit.threads)
    cores = affinity()
    stored = threading.Semaphore(0)
    channel.follow_parent(stored.release)
    send = worker.sender(stored)

    from harness.engine.board import Board
    from harness.sides import registry
    from harness.sides.session import Process, Session
    from harness.sides.side import Unavailable
    from harness.sides.visiting import measure

    workload = worker.workload_of(unit, send)
    if workload is None:
        return
    process = Process(cores, problems, labels)
    try:
        side = registry.find(unit.backend)(unit.target)
    except Unavailable as error:
        Session(unit, workload, send, Board(board_fd), process).skip(str(error))
        return
    except RuntimeError as error:
        send(protocol.Fatal(f"JAX found no {unit.target} device: {error}"))
        return
    measure(Session(unit, workload, send, Board(board_fd), process), side)


if __name__ == "__main__":
    main()
    channel.end()
