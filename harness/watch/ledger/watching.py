"""Watch JAX's compile requests from inside: what is replaced, and what each replacement notes.

A replacement calls JAX's function once, with the same arguments, and passes on what it returns or
raises. What it notes goes to the request of the running thread; a failure of the noting is counted
and never reaches the user's program.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.watch.ledger import jax_internals, keys
from harness.watch.ledger.events import Event, Parts
from harness.watch.ledger.jax_internals import Internals, Point
from harness.watch.ledger.request import Request, text_of


@dataclass
class Reader:
    """One open ledger, as the watch sees it."""

    receive: Callable[[Event], None]
    fail: Callable[[str], None]
    parts: Parts | None
    """Where computations and options are kept; None for a reader that does not look at keys."""


_lock = threading.Lock()
_readers: list[Reader] = []
_undo: list[tuple[Point, Any]] = []
_thread = threading.local()
_watch: _Watch | None = None


def start(reader: Reader) -> None:
    """Tell a reader every compile request from now on.

    Raises:
        LedgerError: if the running JAX is not one that the ledger knows.
    """
    global _watch
    with _lock:
        if not _readers:
            internals = jax_internals.load()
            _watch = _Watch(internals)
            for point in internals.points():
                note = getattr(_watch, f"on_{point.name.strip('_')}")
                replacement = _watch.around(point.function, note)
                setattr(point.holder, point.name, replacement)
                _undo.append((point, replacement))
            internals.listen(_watch.on_duration)
        _readers.append(reader)


def stop(reader: Reader) -> None:
    """Tell a reader no more; the last one to leave puts JAX back as it was."""
    global _watch
    with _lock:
        _readers.remove(reader)
        if _readers:
            return
        for point, replacement in reversed(_undo):
            # Whoever replaced it after us keeps theirs; ours underneath passes everything on.
            if getattr(point.holder, point.name) is replacement:
                setattr(point.holder, point.name, point.function)
        _undo.clear()
        if _watch is not None:
            _watch.internals.unlisten(_watch.on_duration)
            _watch = None


Arguments = dict[str, Any]


@dataclass
class Call:
    """One call of a replaced function: its arguments, and when it is done how it ended."""

    original: Callable[..., Any]
    signature: inspect.Signature
    args: tuple[Any, ...]
    kwargs: Arguments
    result: Any = None
    error: BaseException | None = None
    seconds: float = 0.0

    def argument(self, name: str, default: Any = None) -> Any:
        """Return an argument by its name in the running release, whatever its position."""
        return self.signature.bind(*self.args, **self.kwargs).arguments.get(name, default)


class _Watch:
    """The replacements; `on_NAME` is called before (`done=False`) and after the function NAME."""

    def __init__(self, internals: Internals) -> None:
        self.internals = internals

    def around(
        self, original: Callable[..., Any], note: Callable[[Request, Call, bool], None]
    ) -> Callable[..., Any]:
        signature = inspect.signature(original)
        outermost = original.__name__ == "compile_or_get_cached"

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            request: Request | None = getattr(_thread, "request", None)
            if not _readers or (request is None) != outermost:
                return original(*args, **kwargs)
            if outermost:
                request = _thread.request = Request()
            assert request is not None
            call = Call(original, signature, args, kwargs)
            self._guarded(note, request, call, False)
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
                    _thread.request = None
                # What the ledger did inside the call is not JAX's time.
                call.seconds = time.perf_counter() - began - (request.own_s - own_before)
                self._guarded(note, request, call, True)

        return replacement

    def _guarded(
        self,
        note: Callable[[Request, Call, bool], None],
        request: Request,
        call: Call,
        done: bool,
    ) -> None:
        began = time.perf_counter()
        try:
            note(request, call, done)
        # Whatever goes wrong in here is the ledger's own affair: the user's compile goes on.
        except Exception as error:
            _count_failure(error)
        request.own_s += time.perf_counter() - began

    def on_duration(self, event: str, duration_secs: float, **_: Any) -> None:
        request: Request | None = getattr(_thread, "request", None)
        if request is not None and event == jax_internals.SAVED_EVENT:
            request.jax_saved_s = duration_secs

    def on_compile_or_get_cached(self, request: Request, call: Call, done: bool) -> None:
        from harness.watch.ledger import judging

        if not done:
            request.backend = call.argument("backend")
            request.module = jax_internals.module_name(call.argument("computation"))
            request.locations_in_key = bool(
                self.internals.setting("compilation_cache_include_metadata_in_key")
            )
            return
        event = judging.event_of(request, call.error, call.seconds, self.internals)
        for reader in tuple(_readers):
            reader.receive(event)

    def on_is_cache_used(self, request: Request, call: Call, done: bool) -> None:
        if done and call.error is None:
            request.used = bool(call.result)
            request.enabled = bool(self.internals.setting("enable_compilation_cache"))

    def on_get(self, request: Request, call: Call, done: bool) -> None:
        if not done:
            if any(reader.parts is not None for reader in tuple(_readers)):
                request.capturing = keys.Captured()
            return
        captured, request.capturing = request.capturing, None
        request.key_s += call.seconds
        if call.error is not None:
            request.key_error = text_of(call.error)
            return
        request.key = str(call.result)
        if captured is None:
            return
        request.captured[request.key] = captured
        for reader in tuple(_readers):
            if reader.parts is not None:
                captured.keep(call.argument("module"), reader.parts, request.locations_in_key)

    def on_log_cache_key_hash(self, request: Request, call: Call, done: bool) -> None:
        if done and request.capturing is not None:
            request.capturing.add(call.argument("last_serialized"), call.argument("hashfn"))

    def on_get_executable_and_time(self, request: Request, call: Call, done: bool) -> None:
        request.reading = not done
        if not done:
            request.key = str(call.argument("cache_key"))
            return
        request.load_s = call.seconds
        if call.error is not None:
            request.read_error = text_of(call.error)
        elif call.result[0] is not None:
            request.loaded = True
            request.stored_compile_s = int(call.result[1])

    def on_decompress_executable(self, request: Request, call: Call, done: bool) -> None:
        if not done and request.reading:
            request.bytes_in = len(call.argument("executable"))

    def on_backend_compile_and_load(self, request: Request, call: Call, done: bool) -> None:
        if done:
            request.compile_s = (request.compile_s or 0.0) + call.seconds
            if call.error is not None:
                request.compile_error = text_of(call.error)

    def on_cache_write(self, request: Request, call: Call, done: bool) -> None:
        if not done:
            request.asked_to_write = True
            request.jax_compile_s = float(call.argument("compile_time_secs"))
            # jax 0.10.2 only: later releases store programs with host callbacks as well.
            request.host_callbacks = bool(call.argument("host_callbacks", ()))

    def on_put_executable_and_time(self, request: Request, call: Call, done: bool) -> None:
        request.putting = not done
        if not done:
            return
        request.write_s = call.seconds
        if call.error is not None:
            request.write_error = text_of(call.error)
        backend = call.argument("backend")
        if self.internals.cache(backend) is not None:
            request.put = True
            request.in_place = self.internals.entry_exists(backend, call.argument("cache_key"))

    def on_evict_if_needed(self, request: Request, call: Call, done: bool) -> None:
        request.found_room = request.putting

    def on_acquire(self, request: Request, call: Call, done: bool) -> None:
        if done:
            request.lock_wait_s += call.seconds

    def on_compress_executable(self, request: Request, call: Call, done: bool) -> None:
        if done and request.putting and call.error is None:
            request.entry_bytes = len(call.result)


def _count_failure(error: Exception) -> None:
    for reader in tuple(_readers):
        reader.fail(text_of(error))
