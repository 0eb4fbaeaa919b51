"""One isolated process that measures one side of a comparison and streams records.

Started by :mod:`harness.process` as `python -m harness.baselines.worker CHANNEL BOARD`; the
protocol is that of :mod:`harness.worker`. The environment is verified, and the process kept to its
cores, before NumPy or JAX are imported: both read their variables, and count cores, when they are.
"""

from __future__ import annotations

import os
import sys
import threading

from harness import environment, worker
from harness.baselines import threads as rules
from harness.baselines import variables


def main() -> None:
    """Read a unit, measure it, and end."""
    channel, board_fd = map(int, sys.argv[1:])
    os.dup2(2, 1)  # what a workload prints must not be mistaken for anything of ours
    unit_bytes = worker.read_line()

    from harness import unit as protocol

    unit = protocol.decode_unit(unit_bytes)
    problems = variables.problems(unit.environment)
    labels = rules.pin(unit.threads)
    cores = environment.affinity()
    stored = threading.Semaphore(0)
    threading.Thread(target=worker.listen, args=(stored,), daemon=True).start()
    send = worker.sender(channel, stored)

    from harness.baselines import sides
    from harness.baselines.session import Process, Session
    from harness.baselines.side import Unavailable
    from harness.baselines.visiting import measure
    from harness.board import Board

    workload = worker.workload_of(unit, send)
    if workload is None:
        return
    process = Process(cores, problems, labels)
    try:
        side = sides.take(unit.backend, unit.target)
    except Unavailable as error:
        Session(unit, workload, send, Board(board_fd), process).skip(str(error))
        return
    except RuntimeError as error:
        send(protocol.Fatal(f"JAX found no {unit.target} device: {error}"))
        return
    measure(Session(unit, workload, send, Board(board_fd), process), side)


if __name__ == "__main__":
    main()
    worker.end(0)
