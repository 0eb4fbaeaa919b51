"""The parent of measuring processes: it has imported JAX, wakes no back end, and forks them.

Started as `python -m harness.measure.parent CONTROL` in the very environment that the processes are
to have, so that nothing which Python or JAX read when they start has to be set anew. CONTROL is a
socket to the sweep: each order comes with the open files of a process, and is answered with the
number of that process and, once it has ended, with its status. Ends, and ends the process that it
has forked, when the sweep is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
import warnings

from harness.jaxhooks import jax_names
from harness.measure import channel

FILES = 4
"""With an order come standard input, the output, the channel, and the note of what is measured."""


def main(control: socket.socket) -> None:
    """Import what every measuring process needs, and fork until there is no sweep any more."""
    import numpy  # one at a time: what each brings along is told apart

    threads = _native_threads()  # of a library for matrices, which ends them around a fork
    jax_names.public()  # whether it starts threads is asked
    from harness.workload.code import LoadedCode  # before what it is to take note of

    code = LoadedCode()
    from harness.measure import staged, worker  # the first imports the rest

    del staged  # it need only be there
    unsafe = _unsafe(threads)
    channel.send(json.dumps({"unsafe": unsafe, "loaded": code.installed()}).encode())
    channel_fd, current_fd = _forked(control)
    # From here on this is a measuring process.
    try:
        os.environ[channel.CHANNEL] = str(channel_fd)
        numpy.random.seed()  # as Python's own generator has been
        stored = threading.Semaphore(0)
        line = channel.read_job()
        channel.follow_parent(stored.release)
        worker.staged(line, current_fd, stored, code=code)
    except BaseException:  # whatever it is: this copy must not go on as the parent does
        traceback.print_exc()
        channel.end(1)
    channel.end()


def _unsafe(threads: int) -> str:
    """Return why a process must not be forked from this one; empty if it may be."""
    if jax_names.bridge().backends_are_initialized():
        return "a back end of JAX is awake as soon as JAX is imported"
    others = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
    if others:
        return f"threads run as soon as JAX is imported: {', '.join(others)}"
    if _native_threads() > threads:
        return "JAX has started threads when it was imported"
    return ""


def _native_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _forked(control: socket.socket) -> tuple[int, int]:
    """Fork for each order; return in the forks, with the numbers of the channel and the note."""
    while True:
        _, files, _, _ = socket.recv_fds(control, 1, FILES)
        if not files:
            channel.end()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads: see `_unsafe`
            pid = os.fork()
        if not pid:
            control.close()
            os.setsid()
            stdin, output, *others = files
            for number, fd in enumerate((stdin, output, output)):
                os.dup2(fd, number)
            os.close(stdin)
            os.close(output)
            return others[0], others[1]
        for fd in files:
            os.close(fd)
        _await(pid, control)


def _await(pid: int, control: socket.socket) -> None:
    """Tell the sweep of a process and of its end; end it if the sweep is gone before."""
    ended = os.pidfd_open(pid)
    try:
        control.send(channel.ANSWER.pack(pid))
        if (
            control.fileno() in select.select([ended, control.fileno()], [], [])[0]
        ):  # nothing else is to be heard
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            channel.end()
    finally:
        os.close(ended)
    _, status = os.waitpid(pid, 0)
    control.send(channel.ANSWER.pack(status))


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
