"""The files that a followed process appends lines to, whatever the program does to descriptors.

`harness/jaxhooks/bootstrap/sitecustomize.py` loads this module by its file at the start of every
Python that is followed, so it imports nothing that such a process would not have imported anyhow.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from _thread import RLock, get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SUFFIX = ".jsonl"
SCHEMA = 4
"""Of the lines; `harness.jaxhooks.events.SCHEMA` is the same."""

MOST_WAITING = 1_000
"""Lines that are kept for later when the disk is full; those beyond are lost, and counted."""

HIGH = 600
"""Where the file's descriptor is put: programs close, and count on, the low ones."""

clock = time.perf_counter_ns


class _AppendedFile:
    """A file that is appended to.

    A program may close every descriptor and open a file of its own under the same number, so each
    line is preceded by a look at what the descriptor stands for.
    """

    path = ""
    _descriptor = -1
    _identity = (0, 0)

    def _keep(self, descriptor: int) -> None:
        from fcntl import F_DUPFD_CLOEXEC, fcntl  # only once there is a file

        try:
            high = fcntl(descriptor, F_DUPFD_CLOEXEC, HIGH)
        except OSError:  # fewer are allowed: it stays where it is
            high = descriptor
        else:
            os.close(descriptor)
        status = os.fstat(high)
        self._descriptor, self._identity = high, (status.st_dev, status.st_ino)

    def _is_ours(self) -> bool:
        try:
            status = os.fstat(self._descriptor)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def _reopen(self) -> bool:
        identity = self._identity
        self._keep(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
        if self._identity == identity:
            return True
        os.close(self._descriptor)  # another file is there now
        self._descriptor, self._identity = -1, identity
        return False

    def close(self) -> None:
        """Close the file, unless the program has done so."""
        if self._is_ours():
            os.close(self._descriptor)
        self._descriptor = -1


class SharedFile(_AppendedFile):
    """A file that several processes append to: a line by one write, so that theirs do not mix."""

    def __init__(self, path: str) -> None:
        """Open the file, new or not; an OSError if it cannot be written."""
        self.path = os.path.abspath(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._keep(os.open(self.path, flags, 0o644))
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":  # its last writer was killed
            os.write(self._descriptor, b"\n")

    def append(self, line: bytes) -> None:
        """Append a line; an OSError if it could not be written whole."""
        if not (self._is_ours() or self._reopen()):
            raise FileNotFoundError(0, "another file is in its place")
        written = os.write(self._descriptor, line)
        if written < len(line):  # a full disk; the next line starts on one of its own
            try:  # noqa: SIM105  (contextlib is not imported for it)
                os.write(self._descriptor, b"\n")
            except OSError:
                pass
            raise OSError(f"only {written} of {len(line)} bytes were written")


class LogFile(_AppendedFile):
    """The file of this process alone: its first line is written at once, in a fork with the second.

    Where the disk is full, lines wait, and go on from the byte at which there was no more room.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.first: bytes = b""
        """The line that begins the file; empty where the recorder writes it."""
        self.lost = 0
        self.lock = RLock()  # a signal's handler may write while the thread it stopped does
        self.on_first: Callable[[], None] | None = None
        """Called once, when the file of a fork gets its first line."""
        self.forked = False
        """Whether this process is a fork of the one that made the first file."""
        self._pid = os.getpid()
        self._begun = False
        self._waiting: list[bytes] = []
        self._done = 0
        """Bytes of the first of them that are written."""
        self._flushing = False

    def begin(self, how: str) -> None:
        """Make the file and write who is recording; an OSError if the folder cannot be written."""
        self.first = as_json("started", started(how))
        self.open()
        self.append(b"")

    def open(self) -> None:
        """Make the file; an OSError if the folder cannot be written."""
        os.makedirs(self.folder, exist_ok=True)
        host = "".join(c if c.isalnum() or c in "-_." else "_" for c in os.uname().nodename)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        number = 0
        while True:
            path = os.path.join(self.folder, f"{host}-{os.getpid()}-{number}{SUFFIX}")
            try:
                self._keep(os.open(path, flags, 0o644))
                break
            except FileExistsError:
                number += 1
        self.path, self._pid = path, os.getpid()

    def append(self, text: bytes) -> None:
        """Append a line; from any thread, signal handlers included."""
        if self._pid != os.getpid():  # forked by C, which tells no one
            self.after_fork()
        with self.lock:
            if self.first and not self._begun:
                text = self.first + text
            self._begun = True
            if self._waiting:
                self._flush()
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append(text)
                self._flush()
            else:
                self.lost += 1
        if self.on_first is not None:
            action, self.on_first = self.on_first, None
            action()

    def _flush(self) -> None:
        """Write what waits, as far as there is room."""
        if self._flushing:  # a signal's handler: the thread that it stopped writes its lines
            return
        self._flushing = True
        try:
            if not self.path:
                self.open()
            if not (self._is_ours() or self._reopen()):
                return
            while self._waiting:
                rest = self._waiting[0][self._done :]
                self._done += os.write(self._descriptor, rest) if rest else 0
                if self._done < len(self._waiting[0]):
                    return
                del self._waiting[0]
                self._done = 0
        except OSError:  # no room, or the folder is gone
            return
        finally:
            self._flushing = False

    def close(self) -> None:
        """Close the file, unless the program has done so."""
        with self.lock:
            if self._waiting:
                self._flush()
            self.lost += len(self._waiting)
            self._waiting.clear()
            super().close()

    def after_fork(self) -> None:
        """Leave the parent's file to the parent, in a child; the child's is made when needed.

        A child that does nothing but become another program leaves no file.
        """
        if self._pid == os.getpid():
            return
        self._pid, self.lock = os.getpid(), RLock()
        self._waiting, self._done, self._flushing = [], 0, False
        self.close()
        self.path, self.lost, self._begun, self.forked = "", 0, False, True
        self.first = as_json("started", started("fork"))


def started(how: str) -> dict[str, Any]:
    """Return the fields of `events.Started`, for this process and now."""
    now_ns, at_s = clock(), time.time()
    try:
        cwd = os.getcwd()
    except OSError:  # it was deleted
        cwd = ""
    threading = sys.modules.get("threading")
    main = threading.main_thread().ident if threading is not None else get_ident()
    return {
        "schema": SCHEMA,
        "pid": os.getpid(),
        "parent_pid": os.getppid(),
        "host": os.uname().nodename,
        "how": how,
        "argv": tuple(map(clean, sys.orig_argv)),
        "cwd": clean(cwd),
        "python": sys.version.split()[0],
        "at_s": at_s,
        "clock_ns": now_ns,
        "process_ns": now_ns - _age_ns(),
        "cpu_count": os.cpu_count() or 1,
        "main_thread": main or 0,
    }


def _age_ns() -> int:
    """Return how long ago this process was started (`exec` does not start one), 0 if unknown."""
    try:
        with open("/proc/self/stat", "rb") as stat:  # proc(5): field 22, in ticks since the boot
            ticks = int(stat.read().rpartition(b")")[2].split()[19])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):  # not Linux
        return 0
    return max(0, round(age_s * 1e9))


def clean(text: str) -> str:
    """Return a text that JSON can hold: a file's name may be no Unicode."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def as_json(event: str, line: dict[str, Any]) -> bytes:
    """Return a line as JSON; what `json` does, which takes longer to import than all of this."""
    from _json import encode_basestring_ascii as quoted  # only once there is a line

    def value(of: Any) -> str:
        if isinstance(of, str):
            return quoted(of)
        return "[" + ",".join(map(value, of)) + "]" if isinstance(of, tuple) else repr(of)

    fields = {"event": event, **line}
    text = "{" + ",".join(f'"{name}":{value(of)}' for name, of in fields.items()) + "}"
    return sealed(text.encode()) + b"\n"


_SEAL = b',"crc32":"%08x"}'
_SEAL_BEGINS, _SEAL_BYTES = _SEAL[:10], len(_SEAL % 0)


def sealed(text: bytes) -> bytes:
    """Return a JSON object, not an empty one, closed by the CRC-32 of its bytes."""
    return text[:-1] + _seal_of(text[:-1])


def is_sealed(text: bytes) -> bool | None:
    """Return whether the checksum that closes a JSON object is that of it; None without one.

    It is of the object as it was before the checksum was put before its closing brace.
    """
    end = len(text) - _SEAL_BYTES
    if end <= 0 or not text.startswith(_SEAL_BEGINS, end):
        return None
    return text.endswith(_seal_of(memoryview(text)[:end]))


def _seal_of(text: bytes | memoryview) -> bytes:
    from zlib import crc32  # only once there is a line

    return _SEAL % crc32(b"}", crc32(text))


def at_end(action: Callable[[str], None]) -> None:
    """Have an action called with `exit` or `exec` just before this process ends.

    `os._exit`, by which forked workers end, runs no exit handlers, and neither does `os.execv`,
    upon which the other functions of its family stand. A program that runs its exit handlers by
    itself goes on.
    """
    atexit.register(action, "exit")
    real = atexit._run_exitfuncs

    def run_others() -> None:
        atexit.unregister(action)
        try:
            real()
        finally:
            atexit.register(action, "exit")

    atexit._run_exitfuncs = run_others
    for name, why in (("_exit", "exit"), ("execv", "exec"), ("execve", "exec")):
        setattr(os, name, _preceded(getattr(os, name), action, why))


def _preceded(real: Any, action: Callable[[str], None], why: str) -> Any:
    def replacement(*args: Any, **kwargs: Any) -> Any:
        try:
            action(why)
        except Exception as error:  # the program ends as it would
            print(f"harness: the profile's end was not written: {error}", file=sys.stderr)
        return real(*args, **kwargs)

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(replacement, name, getattr(real, name, None))
    replacement.__wrapped__ = real  # type: ignore[attr-defined]
    return replacement
