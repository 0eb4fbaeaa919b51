"""Watch JAX's requests to the persistent cache from inside, one after the other on each thread."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import LedgerError
from harness.watch import cache_keys, jax_names, outcomes
from harness.watch.outcomes import RequestState
from harness.watch.replacements import Replacements, error_text
from harness.watch.settings import SettingsReader

_thread = threading.local()


@dataclass(slots=True)
class _Call:
    """One call of a replaced function: its arguments, and when it is done how it ended."""

    positions: Mapping[str, int]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any = None
    error: BaseException | None = None
    seconds: float = 0.0

    def argument(self, name: str, default: Any = None) -> Any:
        """Return an argument by its name in the running release, whatever its position."""
        position = self.positions.get(name, len(self.args))
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)


_Note = Callable[[RequestState, _Call, bool], None]


class _Requests(Replacements):
    """The replacements; the method of a role is called before (`done=False`) and after."""

    listeners: tuple[Any, ...] = ()

    def install(self) -> None:
        """Put the replacements in place.

        Raises:
            LedgerError: if the running JAX is not one that the ledger knows.
        """
        points = jax_names.points(jax_names.REQUESTS, "ledger", LedgerError)
        jax_names.check_read("ledger", LedgerError)
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
        names = inspect.signature(original).parameters
        positions = {name: position for position, name in enumerate(names)}
        outermost = role == "compile_or_get_cached"

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            request: RequestState | None = getattr(_thread, "request", None)
            if not self.active or (request is None) != outermost:
                return original(*args, **kwargs)
            if outermost:
                request = _thread.request = RequestState()
            assert request is not None
            call = _Call(positions, args, kwargs)
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

    def _guarded(self, note: _Note, request: RequestState, call: _Call, done: bool) -> None:
        began = time.perf_counter()
        try:
            note(request, call, done)
        # Whatever goes wrong in here is the ledger's own affair: the user's compile goes on.
        except Exception as error:
            for listener in self.listeners:
                listener.failed(error)
        request.own_s += time.perf_counter() - began

    def _on_duration(self, event: str, duration_secs: float, **_: Any) -> None:
        request: RequestState | None = getattr(_thread, "request", None)
        if request is not None and event == jax_names.SAVED_EVENT:
            request.jax_saved_s = duration_secs

    # --- one method for each role of `jax_names.REQUESTS` -----------------------------------------

    def _compile_or_get_cached(self, request: RequestState, call: _Call, done: bool) -> None:
        if not done:
            request.backend = call.argument("backend")
            request.module = cache_keys.module_name(call.argument("computation"))
            request.metadata_in_key = bool(
                jax_names.setting("compilation_cache_include_metadata_in_key")
            )
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
        if not done:
            request.asked_to_write = True
            request.jax_compile_s = float(call.argument("compile_time_secs"))
            request.host_callbacks = bool(call.argument("host_callbacks", ()))

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
_open: _Requests | None = None
"""Those of this process, while somebody listens; never used again, so that what others have put
around them is idle."""


def add(listener: Any) -> None:
    """Tell a listener every request from now on, on the thread that makes it.

    Args:
        listener: has `requested(event)`, `failed(error)` for a failure of the noting, and `parts`,
            where computations and options are kept; None for one that does not look at keys.

    Raises:
        LedgerError: if the running JAX is not one that the ledger knows.
    """
    global _open
    with _lock:
        made = _open or _Requests()
        if _open is None:
            try:
                made.install()
            except BaseException:
                made.uninstall()
                raise
            _open = made
        made.listeners = (*made.listeners, listener)


def drop(listener: Any) -> None:
    """Tell a listener no more; the last one to leave puts JAX back as it was."""
    global _open
    with _lock:
        if _open is None:
            return
        _open.listeners = tuple(one for one in _open.listeners if one is not listener)
        if not _open.listeners:
            _open.uninstall()
            _open = None


def after_fork() -> None:
    """Forget, in a child, what other threads of the parent were at."""
    global _lock
    _lock = threading.RLock()
