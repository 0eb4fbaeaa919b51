"""A process's file in a profile's folder: opened, begun and ended with the standard library alone.

`harness/watch/bootstrap/sitecustomize.py` loads this module by its file at the start of every
Python that is followed, so it imports nothing that such a process would not have imported anyhow.
Whatever records more (`recording.py`) is imported when the process imports JAX.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
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
SCHEMA = 1
"""Of the lines; `harness.watch.events.SCHEMA` is the same."""

MOST_WAITING = 1_000
"""Lines that are kept for later when the disk is full; those beyond are lost, and counted."""

HIGH = 600
"""Where the file's descriptor is put: programs close, and count on, the low ones."""

clock = time.perf_counter_ns


class LogFile:
    """The file of this process: its first line is written at once, in a fork with the second.

    A program may close every descriptor and open a file of its own under the same number, so each
    line is preceded by a look at what the descriptor stands for. Where the disk is full, lines
    wait, and go on from the byte at which there was no more room.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.path = ""
        self.first: bytes = b""
        """The line that begins the file; empty where the recorder writes it."""
        self.lost = 0
        self.lock = RLock()  # a signal's handler may write while the thread it stopped does
        self.on_first: Callable[[], None] | None = None
        """Called once, when the file of a fork gets its first line."""
        self.forked = False
        """Whether this process is a fork of the one that made the first file."""
        self._pid = os.getpid()
        self._descriptor = -1
        self._identity = (0, 0)
        self._begun = False
        self._waiting: list[bytes] = []
        self._done = 0
        """Bytes of the first of them that are written."""
        self._flushing = False

    def begin(self, how: str) -> None:
        """Make the file and write who is recording.

        Raises:
            OSError: if the folder cannot be written.
        """
        self.first = _json(started(how))
        self.open()
        self.append(b"")

    def open(self) -> None:
        """Make the file.

        Raises:
            OSError: if the folder cannot be written.
        """
        os.makedirs(self.folder, exist_ok=True)
        host = "".join(c if c.isalnum() or c in "-_." else "_" for c in os.uname().nodename)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for number in range(10_000):
            path = os.path.join(self.folder, f"{host}-{os.getpid()}-{number}{SUFFIX}")
            try:
                self._keep(os.open(path, flags, 0o644))
            except FileExistsError:
                continue
            self.path, self._pid = path, os.getpid()
            return
        raise FileExistsError(0, "it holds 10,000 logs of processes with this number")

    def append(self, text: bytes) -> bool:
        """Append a line; from any thread, signal handlers included. Tells whether it is written."""
        if self._pid != os.getpid():  # forked by C, which tells no one
            self.after_fork()
        with self.lock:
            if self.first and not self._begun:
                text = self.first + text
            self._begun = True
            if self._waiting:
                self._flush()
            room = len(self._waiting) < MOST_WAITING
            if room:
                self._waiting.append(text)
                self._flush()
            else:
                self.lost += 1
            whole = room and not self._waiting
        if self.on_first is not None:
            told, self.on_first = self.on_first, None
            told()
        return whole

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
                rest = rest[: self._room(len(rest))]
                self._done += os.write(self._descriptor, rest) if rest else 0
                if self._done < len(self._waiting[0]):
                    return
                del self._waiting[0]
                self._done = 0
        except OSError:  # no room, or the folder is gone
            return
        finally:
            self._flushing = False

    def _room(self, wanted: int) -> int:
        """Return how much may be written: more brings a signal, which is ignored by default."""
        number = getattr(_signal, "SIGXFSZ", None)
        if number is None or _signal.getsignal(number) == _signal.SIG_IGN:
            return wanted
        from resource import RLIM_INFINITY, RLIMIT_FSIZE, getrlimit

        limit = getrlimit(RLIMIT_FSIZE)[0]
        if limit == RLIM_INFINITY:
            return wanted
        return max(0, min(wanted, limit - os.fstat(self._descriptor).st_size))

    def close(self) -> None:
        """Close the file, unless the program has done so."""
        with self.lock:
            if self._waiting:
                self._flush()
            self.lost += len(self._waiting)
            self._waiting.clear()
            if self._is_ours():
                os.close(self._descriptor)
            self._descriptor = -1

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
        self.first = _json(started("fork"))

    def _keep(self, descriptor: int) -> None:
        try:
            from fcntl import F_DUPFD_CLOEXEC, fcntl

            high = fcntl(descriptor, F_DUPFD_CLOEXEC, HIGH)
        except (ImportError, OSError):  # fewer are allowed: it stays where it is
            high = descriptor
        else:
            os.close(descriptor)
        found = os.fstat(high)
        self._descriptor, self._identity = high, (found.st_dev, found.st_ino)

    def _is_ours(self) -> bool:
        try:
            found = os.fstat(self._descriptor)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    def _reopen(self) -> bool:
        identity = self._identity
        self._keep(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
        if self._identity == identity:
            return True
        os.close(self._descriptor)  # another file is there now
        self._descriptor, self._identity = -1, identity
        return False


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
        "argv": tuple(map(_clean, sys.orig_argv)),
        "cwd": _clean(cwd),
        "python": sys.version.split()[0],
        "at_s": at_s,
        "clock_ns": now_ns,
        "process_ns": now_ns - _age_ns(at_s),
        "cpu_count": os.cpu_count() or 1,
        "main_thread": main or 0,
    }


def _age_ns(at_s: float) -> int:
    """Return how long ago this process was started (`exec` does not start one)."""
    try:
        with open("/proc/self/stat", "rb") as stat:  # proc(5): field 22, in ticks since the boot
            ticks = int(stat.read().rpartition(b")")[2].split()[19])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):  # not Linux
        try:
            import psutil
        except ImportError:
            return 0
        age_s = at_s - psutil.Process().create_time()
    return max(0, round(age_s * 1e9))


def _clean(text: str) -> str:
    """Return a text that JSON can hold: a file's name may be no Unicode."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def _json(line: dict[str, Any], event: str = "started") -> bytes:
    """Return a line as JSON; what `json` does, which takes longer to import than all of this."""
    from _json import encode_basestring_ascii as quoted

    def value(of: Any) -> str:
        if isinstance(of, str):
            return quoted(of)
        return "[" + ",".join(map(value, of)) + "]" if isinstance(of, tuple) else repr(of)

    fields = {"event": event, **line}
    return ("{" + ",".join(f'"{name}":{value(of)}' for name, of in fields.items()) + "}\n").encode()


# --- a process that is followed -------------------------------------------------------------------

_file: LogFile | None = None
_recording: Any = None
"""The module that records more, once JAX is there."""
_own_ns = 0
_failures: tuple[str, ...] = ()


def begin(folder: str) -> None:
    """Begin the file of this process, and see to its end.

    Raises:
        OSError: if the folder cannot be written.
    """
    global _file, _own_ns
    began = clock()
    _file = LogFile(folder)
    _file.begin("command")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_file.after_fork)
    at_end(_end)
    _own_ns = clock() - began


def record(begin_ns: int, end_ns: int) -> None:
    """Record from now on: JAX has been imported, from `begin_ns` to `end_ns`.

    Raises:
        ProfileError: if the running JAX is not one that is known.
    """
    global _recording, _failures
    began = clock()
    try:
        from harness.watch import recording

        assert _file is not None
        recording.follow(_file, (begin_ns, end_ns), _own_ns + clock() - began)
        _recording = recording
    except Exception as error:
        _failures = (_clean(f"{type(error).__name__}: {error}"),)
        raise


def _end(why: str) -> None:
    if _recording is not None:
        _recording.end(why)
    elif _file is not None:
        line = {"at_ns": clock(), "why": why, "own_ns": _own_ns, "failures": _failures}
        _file.append(_json(line, "ended"))


def at_end(action: Callable[[str], None]) -> None:
    """Have an action called with `exit` or `exec` just before this process ends.

    `os._exit`, by which forked workers end, runs no exit handlers, and neither does `os.execv`,
    upon which the other functions of its family stand.
    """
    atexit.register(action, "exit")
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
