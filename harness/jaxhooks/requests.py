"""See requests to JAX's persistent compilation cache, on the thread that makes them.

JAX's own counters count writes as misses and whole seconds as savings; here a few of JAX's
functions are replaced while somebody listens, what they did is noted by a clock of our own, and
they are put back.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import threading
import time
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.errors import LedgerError
from harness.jaxhooks import cache_keys, jax_names, outcomes
from harness.jaxhooks.cache_keys import SettingsReader
from harness.jaxhooks.events import Request
from harness.jaxhooks.outcomes import RequestState
from harness.jaxhooks.parts import Parts
from harness.jaxhooks.replacements import Replacements, error_text

clock = time.perf_counter_ns

_Note = Callable[..., None]

_thread = threading.local()


class _Listener(Protocol):
    """What gets each request."""

    @property
    def parts(self) -> Sequence[Parts]: ...

    def requested(self, request: Request) -> None: ...

    def failed(self, error: Exception) -> None: ...


@dataclass(slots=True)
class _Call:
    """One call of a replaced function: its arguments, and when it is done how it ended."""

    parameters: Mapping[str, inspect.Parameter]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any = None
    error: BaseException | None = None
    ns: int = 0

    def argument(self, name: str) -> Any:
        """Return an argument by its name in the running release, whatever its position."""
        if name in self.kwargs or name not in self.parameters:
            return self.kwargs.get(name)
        number = [*self.parameters].index(name)
        return self.args[number] if number < len(self.args) else self.parameters[name].default


class _Requests(Replacements):
    """The replacements; the method of a role is called before (`done=False`) and after."""

    def __init__(self) -> None:
        super().__init__(self._failed)
        self.listeners: tuple[_Listener, ...] = ()

    def install(self) -> None:
        """Put the replacements in place; a LedgerError if this JAX is not known to the ledger."""
        points = jax_names.points(jax_names.REQUESTS, "ledger", LedgerError)
        self.replace(points.pop("hashlib"), types.SimpleNamespace(sha256=self._sha256))
        for role, point in points.items():
            self.replace(point, self._around(point.function, getattr(self, f"_{role}"), role))
        self._settings = SettingsReader(jax_names.CACHE_SETTINGS)
        jax_names.listen(self._on_duration)
        self.active = True

    def uninstall(self) -> None:
        if self.active:
            jax_names.unlisten(self._on_duration)
        super().uninstall()

    def _around(self, original: Callable[..., Any], note: _Note, role: str) -> Callable[..., Any]:
        parameters = inspect.signature(original).parameters
        outermost = role == "compile_or_get_cached"

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            request: RequestState | None = getattr(_thread, "request", None)
            if not self.active or (request is None) != outermost:
                return original(*args, **kwargs)
            if outermost:
                request = _thread.request = RequestState()
            assert request is not None
            call = _Call(parameters, args, kwargs)
            self._note(note, request, call, False)
            began = clock()
            own_before = request.own_ns
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
                call.ns = clock() - began - (request.own_ns - own_before)
                self._note(note, request, call, True)

        return replacement

    def _note(self, note: _Note, request: RequestState, call: _Call, done: bool) -> None:
        began = clock()
        self.guarded(note, request, call, done)
        request.own_ns += clock() - began

    def _failed(self, error: Exception) -> None:
        for listener in self.listeners:
            listener.failed(error)

    def _on_duration(self, event: str, duration_secs: float, **_: Any) -> None:
        if event == jax_names.SAVED_EVENT and hasattr(_thread, "request"):
            _thread.request.jax_saved_ns = round(duration_secs * 1e9)

    # --- one method for each role of `REQUESTS` -----------------------------------------

    def _compile_or_get_cached(self, request: RequestState, call: _Call, done: bool) -> None:
        if not done:
            request.backend = call.argument("backend")
            request.module = cache_keys.module_name(call.argument("computation"))
            in_key = jax_names.setting("compilation_cache_include_metadata_in_key")
            request.metadata_in_key = bool(in_key)
            return
        done_request = outcomes.request_of(request, call.error, call.ns)
        for listener in self.listeners:
            listener.requested(done_request)

    def _is_cache_used(self, request: RequestState, call: _Call, done: bool) -> None:
        if done and call.error is None:
            request.used = bool(call.result)
            request.enabled = bool(jax_names.setting("enable_compilation_cache"))

    def _sha256(self, *data: Any) -> Any:
        """Stand for `hashlib.sha256` where JAX makes keys."""
        request: RequestState | None = getattr(_thread, "request", None)
        if request is None or request.key_parts is not None or not request.makes_key:
            return hashlib.sha256(*data)
        request.key_parts = cache_keys.KeyParts()
        return request.key_parts

    def _make_key(self, request: RequestState, call: _Call, done: bool) -> None:
        parts = [one for listener in self.listeners for one in listener.parts]
        request.makes_key = not done and bool(parts)
        if not done:
            return
        made, request.key_parts = request.key_parts, None
        request.key_ns += call.ns
        if call.error is not None:
            request.key_error = error_text(call.error)
            return
        request.key = str(call.result)
        if made is None:
            return
        request.captured[request.key] = made
        module, devices = call.argument("module"), call.argument("devices")
        for one in parts:
            made.keep(module, devices, one, request.metadata_in_key)
            request.settings = cache_keys.keep_settings(self._settings.now(), one)

    def _hash_part(self, request: RequestState, call: _Call, done: bool) -> None:
        if done and request.key_parts is not None:
            request.key_parts.end_part(call.argument("last_serialized"))

    def _get_executable(self, request: RequestState, call: _Call, done: bool) -> None:
        request.reading = not done
        if not done:
            request.key = str(call.argument("cache_key"))
            return
        request.load_ns = call.ns
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
            request.compile_ns += call.ns
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
        request.write_ns = call.ns
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
            request.lock_wait_ns += call.ns

    def _compress(self, request: RequestState, call: _Call, done: bool) -> None:
        if done and request.putting and call.error is None:
            request.entry_bytes = len(call.result)


_lock = threading.RLock()
_source: _Requests | None = None
"""While somebody listens; new each time, so that what others have put around an old one is idle."""


def add(listener: _Listener) -> None:
    """Tell a listener every request from now on; a LedgerError if this JAX is not known."""
    global _source
    with _lock:
        if _source is None:
            made = _Requests()
            made.start()
            _source = made
        _source.listeners = (*_source.listeners, listener)


def drop(listener: _Listener) -> None:
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
