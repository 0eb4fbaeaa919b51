"""Record what JAX's persistent compilation cache really does, request by request, in any process.

    with ledger("run.jsonl") as book:
        step(x)                      # whatever compiles in here
    summarize(book.events).hits

JAX's own counters count writes as misses and whole seconds as savings; here a few of JAX's
functions are replaced while somebody listens, what they did is noted by a clock of our own, and
they are put back.
"""

from __future__ import annotations

import functools
import inspect
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import LedgerError
from harness.watch import cache_keys, jax_names, outcomes
from harness.watch.cache_keys import SettingsReader
from harness.watch.ledger_events import FILE_SUFFIX, Event, Parts, parts_of
from harness.watch.log_file import SharedFile
from harness.watch.outcomes import RequestState
from harness.watch.replacements import Replacements, error_text
from harness.watch.writer import encoded

_Note = Callable[..., None]

_thread = threading.local()


@dataclass(slots=True)
class _Call:
    """One call of a replaced function: its arguments, and when it is done how it ended."""

    signature: inspect.Signature
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any = None
    error: BaseException | None = None
    seconds: float = 0.0

    def argument(self, name: str) -> Any:
        """Return an argument by its name in the running release, whatever its position."""
        return self.signature.bind(*self.args, **self.kwargs).arguments.get(name)


class _Requests(Replacements):
    """The replacements; the method of a role is called before (`done=False`) and after."""

    def __init__(self) -> None:
        super().__init__(self._failed)
        self.listeners: tuple[Any, ...] = ()

    def install(self) -> None:
        """Put the replacements in place; a LedgerError if this JAX is not known to the ledger."""
        points = jax_names.points(jax_names.REQUESTS, "ledger", LedgerError)
        for role, point in points.items():
            self.replace(point, self._around(point.function, getattr(self, f"_{role}"), role))
        self._settings = SettingsReader(jax_names.CACHE_SETTINGS)
        jax_names.listen(self._on_duration)
        self.active = True

    def uninstall(self) -> None:
        """Put JAX back as it was."""
        if self.active:
            jax_names.unlisten(self._on_duration)
        super().uninstall()

    def _around(self, original: Callable[..., Any], note: _Note, role: str) -> Callable[..., Any]:
        signature = inspect.signature(original)
        outermost = role == "compile_or_get_cached"

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            request: RequestState | None = getattr(_thread, "request", None)
            if not self.active or (request is None) != outermost:
                return original(*args, **kwargs)
            if outermost:
                request = _thread.request = RequestState()
            assert request is not None
            call = _Call(signature, args, kwargs)
            self._note(note, request, call, False)
            began = time.perf_counter()
            own_before = request.own_s
            try:
                call.result = original(*args, **kwargs)
                return call.result
            except BaseException as error:
                call.error = error
                raise
            finally:
                if outermost:
                    del _thread.request
                # What the ledger did inside the call is not JAX's time.
                call.seconds = time.perf_counter() - began - (request.own_s - own_before)
                self._note(note, request, call, True)

        return replacement

    def _note(self, note: _Note, request: RequestState, call: _Call, done: bool) -> None:
        began = time.perf_counter()
        self.guarded(note, request, call, done)
        request.own_s += time.perf_counter() - began

    def _failed(self, error: Exception) -> None:
        for listener in self.listeners:
            listener.failed(error)

    def _on_duration(self, event: str, duration_secs: float, **_: Any) -> None:
        if event == jax_names.SAVED_EVENT and hasattr(_thread, "request"):
            _thread.request.jax_saved_s = duration_secs

    # --- one method for each role of `REQUESTS` -----------------------------------------

    def _compile_or_get_cached(self, request: RequestState, call: _Call, done: bool) -> None:
        if not done:
            request.backend = call.argument("backend")
            request.module = cache_keys.module_name(call.argument("computation"))
            in_key = jax_names.setting("compilation_cache_include_metadata_in_key")
            request.metadata_in_key = bool(in_key)
            return
        event = outcomes.event_of(request, call.error, call.seconds)
        for listener in self.listeners:
            listener.requested(event)

    def _is_cache_used(self, request: RequestState, call: _Call, done: bool) -> None:
        if done and call.error is None:
            request.used = bool(call.result)
            request.enabled = bool(jax_names.setting("enable_compilation_cache"))

    def _make_key(self, request: RequestState, call: _Call, done: bool) -> None:
        if not done:
            if any(listener.parts is not None for listener in self.listeners):
                request.capturing = cache_keys.KeyParts()
            return
        captured, request.capturing = request.capturing, None
        request.key_s += call.seconds
        if call.error is not None:
            request.key_error = error_text(call.error)
            return
        request.key = str(call.result)
        if captured is None:
            return
        request.captured[request.key] = captured
        for listener in self.listeners:
            if listener.parts is not None:
                module, devices = call.argument("module"), call.argument("devices")
                captured.keep(module, devices, listener.parts, request.metadata_in_key)
                request.settings = cache_keys.keep_settings(self._settings.now(), listener.parts)

    def _hash_part(self, request: RequestState, call: _Call, done: bool) -> None:
        if done and request.capturing is not None:
            request.capturing.add(call.argument("last_serialized"), call.argument("hashfn"))

    def _get_executable(self, request: RequestState, call: _Call, done: bool) -> None:
        request.reading = not done
        if not done:
            request.key = str(call.argument("cache_key"))
            return
        request.load_s = call.seconds
        if call.error is not None:
            request.read_error = error_text(call.error)
        elif call.result[0] is not None:
            request.loaded = True
            request.stored_compile_s = int(call.result[1])

    def _decompress(self, request: RequestState, call: _Call, done: bool) -> None:
        if not done and request.reading:
            request.bytes_in = len(call.argument("executable"))

    def _backend_compile(self, request: RequestState, call: _Call, done: bool) -> None:
        if done:
            request.compile_s = (request.compile_s or 0.0) + call.seconds
            if call.error is not None:
                request.compile_error = error_text(call.error)

    def _cache_write(self, request: RequestState, call: _Call, done: bool) -> None:
        request.asked_to_write = True
        request.jax_compile_s = float(call.argument("compile_time_secs"))
        request.host_callbacks = bool(call.argument("host_callbacks"))

    def _put_executable(self, request: RequestState, call: _Call, done: bool) -> None:
        request.putting = not done
        if not done:
            return
        request.write_s = call.seconds
        if call.error is not None:
            request.write_error = error_text(call.error)
        cache = jax_names.persistent_cache(call.argument("backend"))
        if cache is not None:
            request.put = True
            entry = cache._path / f"{call.argument('cache_key')}-cache"
            request.in_place = bool(entry.exists())

    def _evict_entries(self, request: RequestState, call: _Call, done: bool) -> None:
        request.found_room = request.putting
        cache = call.argument("self")
        if not cache.eviction_enabled:
            return
        names = os.listdir(cache._path)
        present = frozenset(name.removesuffix("-cache") for name in names if name[-6:] == "-cache")
        if done:
            request.evicted = tuple(sorted(request.present - present))
        else:
            request.present = present

    def _lock_directory(self, request: RequestState, call: _Call, done: bool) -> None:
        if done:
            request.lock_wait_s += call.seconds

    def _compress(self, request: RequestState, call: _Call, done: bool) -> None:
        if done and request.putting and call.error is None:
            request.entry_bytes = len(call.result)


_lock = threading.RLock()
_source: _Requests | None = None
"""While somebody listens; new each time, so that what others have put around an old one is idle."""


def add(listener: Any) -> None:
    """Tell a listener every request from now on, on the thread that makes it.

    It has `requested(event)`, `failed(error)` for a failure of the noting, and `parts`, where
    computations and options are kept; None if it does not look at keys.
    """
    global _source
    with _lock:
        if _source is None:
            made = _Requests()
            made.start()
            _source = made
        _source.listeners = (*_source.listeners, listener)


def drop(listener: Any) -> None:
    """Tell a listener no more; the last one to leave puts JAX back as it was."""
    global _source
    with _lock:
        if _source is None:
            return
        _source.listeners = tuple(one for one in _source.listeners if one is not listener)
        if not _source.listeners:
            _source.uninstall()
            _source = None


def after_fork() -> None:
    """Forget, in a child, what other threads of the parent were at."""
    global _lock
    _lock = threading.RLock()


@dataclass(eq=False)
class Ledger:
    """An open ledger: the events of this process so far."""

    events: list[Event] = field(default_factory=list)
    parts: Parts = field(default_factory=Parts)
    failures: list[str] = field(default_factory=list)
    """What went wrong inside the ledger itself; the program did not notice."""
    file: SharedFile | None = None
    kept: bool = True
    """Whether events stay in memory."""

    def requested(self, event: Event) -> None:
        """Take a request that is over."""
        if self.kept:
            self.events.append(event)
        if self.file is not None:
            self.file.append(encoded(event))

    def failed(self, error: Exception) -> None:
        """Take a failure of the noting."""
        self.failures.append(error_text(error))


@contextmanager
def ledger(path: Path | str | None = None) -> Iterator[Ledger]:
    """Record every compile request of this process, on all its threads, while it is open.

    Several may be open at once; each gets every request.

    Args:
        path: a file to append events to, shared with any other process, or a folder in which this
            process gets a file of its own; in memory only without it.

    Raises:
        LedgerError: if the file cannot be written, or the running JAX is not one that is known.
    """
    made = _open(Path(path)) if path is not None else Ledger()
    try:
        add(made)
        yield made
    finally:
        drop(made)
        if made.file is not None:
            made.file.close()


def open_until_exit(path: Path | str) -> None:
    """Record every compile request until this process ends, in a file and not in memory.

    A path as :func:`ledger` takes it; one that ends with a slash is made as a folder.
    """
    if str(path).endswith(os.sep):
        os.makedirs(path, exist_ok=True)
    made = _open(Path(path))
    made.kept = False
    add(made)


def _open(path: Path) -> Ledger:
    file = path / f"{platform.node()}-{os.getpid()}{FILE_SUFFIX}" if path.is_dir() else path
    return Ledger(parts=parts_of(path), file=open_file(file))


def open_file(path: Path) -> SharedFile:
    """Open a ledger file, new or not; a LedgerError if it cannot be written."""
    try:
        return SharedFile(str(path))
    except OSError as error:
        raise LedgerError(
            f"The ledger {path} cannot be written: {error.strerror}. "
            "Give a file in a folder that exists and that you may write to."
        ) from None
