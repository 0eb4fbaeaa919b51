"""One isolated process that measures many cases of one workload and streams records.

Started by :mod:`harness.process` as `python -m harness.worker FD`; the unit comes on standard
input, messages go to the file descriptor FD. It imports as little as it can before JAX, because
the import of JAX is one of the numbers.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from harness.unit import Message

_clock = time.perf_counter_ns


def main() -> None:
    """Read a unit, measure it, and end."""
    channel = int(sys.argv[1])
    os.dup2(2, 1)  # what a workload prints must not be mistaken for anything of ours
    unit_bytes = sys.stdin.buffer.readline()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    begin = _clock()
    import jax

    import_ns = _clock() - begin

    from harness import unit as protocol

    unit = protocol.decode_unit(unit_bytes)

    def send(message: Message) -> None:
        _write(channel, protocol.encode_message(message) + b"\n")

    try:
        begin = _clock()
        jax.devices()
        backend_ns = _clock() - begin
    except RuntimeError as error:
        send(protocol.Fatal(f"JAX found no {unit.target} device: {error}"))
        return
    from harness.session import Session, describe
    from harness.workload import WorkloadError

    try:
        workload = protocol.load(unit.source)
    except WorkloadError as error:
        send(protocol.Fatal(str(error)))
        return
    except Exception as error:  # a user's module may raise anything while it is imported
        send(protocol.Fatal(f"importing {unit.source.module} raised {describe(error)}"))
        return
    Session(unit, workload, send, {"import": import_ns, "backend": backend_ns}).run()


def _end_with_parent() -> None:
    """End when the process that asked for the work is gone, however it went."""
    sys.stdin.buffer.read()
    os._exit(1)


def _write(channel: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(channel, view) :]


def _end(code: int) -> NoReturn:
    sys.stderr.flush()
    os._exit(code)  # backends may hang in their own exit handlers


if __name__ == "__main__":
    main()
    _end(0)
