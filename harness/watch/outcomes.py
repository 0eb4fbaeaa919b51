"""Turn what was noted of a request into one event: hit, written, not written and why, or failed."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass, field, fields
from typing import Any

from harness.watch import jax_names
from harness.watch import ledger_events as events
from harness.watch.cache_keys import KeyParts
from harness.watch.jax_names import persistent_cache, process_id, setting, version
from harness.watch.ledger_events import Event, Late, Outcome, Overridden
from harness.watch.replacements import error_text


@dataclass
class RequestState:
    """What is known so far of the compile request that a thread is in."""

    module: str = ""
    metadata_in_key: bool = False
    own_s: float = 0.0
    settings: str = ""
    backend: Any = None
    used: bool | None = None
    """Whether JAX takes the cache for usable here; None where it did not ask."""
    enabled: bool = True
    key: str = ""
    key_s: float = 0.0
    key_error: str = ""
    captured: dict[str, KeyParts] = field(default_factory=dict)
    capturing: KeyParts | None = None
    reading: bool = False
    loaded: bool = False
    load_s: float | None = None
    stored_compile_s: int | None = None
    jax_saved_s: float | None = None
    read_error: str = ""
    bytes_in: int = 0
    compile_s: float | None = None
    compile_error: str = ""
    asked_to_write: bool = False
    host_callbacks: bool = False
    jax_compile_s: float = 0.0
    putting: bool = False
    put: bool = False
    found_room: bool = False
    """Whether JAX found no entry in the place, and set out to write one."""
    present: frozenset[str] = frozenset()
    """The keys in a directory with a size cap, before JAX made room in it."""
    evicted: tuple[str, ...] = ()
    in_place: bool = False
    """Whether an entry was in the place after the put."""
    entry_bytes: int | None = None
    write_s: float | None = None
    write_error: str = ""
    lock_wait_s: float = 0.0


_AS_NOTED = tuple({field.name for field in fields(RequestState)} & Event.__annotations__.keys())


def event_of(request: RequestState, error: BaseException | None, seconds: float) -> Event:
    """Return the event of a finished request."""
    outcome: Outcome = "unwritten"
    reason = detail = ""
    if error is not None:
        outcome = "failed"
        detail = request.compile_error or request.read_error or request.write_error
        detail = detail or error_text(error)
    elif request.loaded:
        outcome = "hit"
    else:
        reason, detail = why_not_written(request)
        if not reason:
            outcome = "written"
    captured = request.captured.get(request.key)
    return Event(
        schema=events.SCHEMA,
        at_s=time.time(),
        pid=os.getpid(),
        host=platform.node(),
        jax=version(),
        outcome=outcome,
        reason=reason,
        detail=detail,
        directory=_directory(),
        overridden=overridden(),
        late=late(),
        limit=_limit(reason),
        request_s=seconds,
        bytes_out=(request.entry_bytes or 0) if outcome == "written" else 0,
        components=tuple(captured.components) if captured else (),
        components_prove_key=captured.proves(request.key) if captured else True,
        **{name: getattr(request, name) for name in _AS_NOTED},
    )


def why_not_written(request: RequestState) -> tuple[str, str]:
    """Return the reason why a miss left no entry and its numbers; two empty texts if it did."""
    lookup = _before_the_compile(request)
    if lookup is not None:
        return lookup
    if not request.asked_to_write:
        return events.OTHER_PROCESS, "jax_share_binary_between_hosts: process 0 compiled it"
    if request.write_error:
        return events.ERROR, request.write_error
    if not request.put:
        return _write_refused(request)
    smallest = int(setting("persistent_cache_min_entry_size_bytes"))
    size = request.entry_bytes or 0
    if size < smallest:
        return events.BELOW_SIZE, f"{size} < {smallest} bytes"
    if request.found_room:
        return "", ""
    if request.in_place:
        if request.read_error:
            return events.UNREADABLE_IN_PLACE, request.read_error
        if jax_names.checks_contents(jax_names.cache_in_use()):
            return events.CHECKED, "the entry is there"
        return events.ALREADY_THERE, ""
    cap = jax_names.cap_in_use(jax_names.cache_in_use())
    if 0 <= cap < size:
        return events.OVER_CAP, f"{size} > {cap} bytes"
    return events.ERROR, "JAX reported no error, and no file was left"


def _before_the_compile(request: RequestState) -> tuple[str, str] | None:
    if request.used is False:
        if not request.enabled:
            return events.DISABLED, "jax_enable_compilation_cache is off"
        if jax_names.can_serialise(request.backend):
            return events.DISABLED, "it was off at the first compile, which freezes it"
        return events.DISABLED, "this backend cannot serialise executables"
    if request.key_error:
        return events.ERROR, f"no key could be made: {request.key_error}"
    if persistent_cache(request.backend) is None:
        if not setting("compilation_cache_dir"):
            return events.NO_DIRECTORY, "jax_compilation_cache_dir is not set"
        return events.UNUSABLE_DIRECTORY, request.read_error or _directory()
    return None


def _write_refused(request: RequestState) -> tuple[str, str]:
    number = process_id()
    if number != 0:
        return events.NOT_PROCESS_0, f"process {number}"
    shortest_s = float(setting("persistent_cache_min_compile_time_secs"))
    if request.jax_compile_s < shortest_s:
        return events.BELOW_TIME, f"{request.jax_compile_s:.3f} < {shortest_s:g} s"
    if request.host_callbacks:
        return events.HOST_CALLBACK, "never stored up to jax 0.10.2; stored since 0.11.0"
    return events.ERROR, "JAX did not try to write"


def _directory() -> str:
    """Return the directory that JAX uses, as an absolute path; empty where none is set."""
    cache = jax_names.cache_in_use()
    path = str(setting("compilation_cache_dir") or "") if cache is None else str(cache._path)
    return path if not path or "://" in path else os.path.abspath(path)


def _limit(reason: str) -> float | None:
    if reason == events.BELOW_TIME:
        return float(setting("persistent_cache_min_compile_time_secs"))
    if reason == events.BELOW_SIZE:
        return float(setting("persistent_cache_min_entry_size_bytes"))
    return None


def overridden() -> tuple[Overridden, ...]:
    """Return the cache's settings of the environment that are not the ones that JAX uses."""
    found = []
    for name in jax_names.CACHE_CONFIG:
        text, value = os.environ.get(f"JAX_{name.upper()}"), setting(name)
        if text and not _is_same(text, value):
            found.append(Overridden(f"jax_{name}", text, str(value)))
    return tuple(found)


def _is_same(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value == (text.lower() in ("1", "y", "yes", "t", "true", "on"))
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return text == str(value or "")


def late() -> tuple[Late, ...]:
    """Return the cache's settings that were changed after its first use, which froze them."""
    cache = jax_names.cache_in_use()
    if cache is None:
        return ()
    path, cap = setting("compilation_cache_dir"), int(setting("compilation_cache_max_size"))
    found = []
    if not path or type(cache._path)(path) != cache._path:
        found.append(Late("jax_compilation_cache_dir", str(path or ""), str(cache._path)))
    if cap != jax_names.cap_in_use(cache):
        used = str(jax_names.cap_in_use(cache))
        found.append(Late("jax_compilation_cache_max_size", str(cap), used))
    if not setting("enable_compilation_cache"):
        found.append(Late("jax_enable_compilation_cache", "False", "True"))
    return tuple(found)
