"""What became of a request: a hit, written, not written and why, or failed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from harness.jaxhooks import events, jax_names
from harness.jaxhooks.cache_keys import KeyParts
from harness.jaxhooks.events import Late, Outcome, Overridden, Request
from harness.jaxhooks.jax_names import persistent_cache, process_id, setting
from harness.jaxhooks.replacements import error_text


@dataclass
class RequestState:
    """What is known so far of the compile request that a thread is in."""

    module: str = ""
    metadata_in_key: bool = False
    own_ns: int = 0
    settings: str = ""
    backend: Any = None
    used: bool | None = None
    """Whether JAX takes the cache for usable here; None where it did not ask."""
    enabled: bool = True
    key: str = ""
    key_ns: int = 0
    key_error: str = ""
    captured: dict[str, KeyParts] = field(default_factory=dict)
    makes_key: bool = False
    """Whether JAX is making a key, and somebody looks at what it is of."""
    key_parts: KeyParts | None = None
    reading: bool = False
    loaded: bool = False
    load_ns: int = 0
    stored_compile_s: int | None = None
    jax_saved_ns: int = 0
    read_error: str = ""
    bytes_in: int = 0
    compile_ns: int = 0
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
    entry_bytes: int = 0
    write_ns: int = 0
    write_error: str = ""
    lock_wait_ns: int = 0


_AS_NOTED = tuple({field.name for field in fields(RequestState)} & Request.__annotations__.keys())


def request_of(state: RequestState, error: BaseException | None, request_ns: int) -> Request:
    """Return a finished request."""
    outcome: Outcome = "unwritten"
    why = Unwritten()
    if error is not None:
        outcome = "failed"
        detail = state.compile_error or state.read_error or state.write_error
        why = Unwritten(detail=detail or error_text(error))
    elif state.loaded:
        outcome = "hit"
    else:
        why = why_not_written(state)
        if not why.reason:
            outcome = "written"
    captured = state.captured.get(state.key)
    directory, relative = _directory()
    return Request(
        outcome=outcome,
        **why._asdict(),
        directory=directory,
        relative=relative,
        overridden=overridden(),
        late=late(),
        request_ns=request_ns,
        bytes_out=state.entry_bytes if outcome == "written" else 0,
        components=tuple(captured.components) if captured else (),
        key_is_proven=captured.proves(state.key) if captured else True,
        at_s=time.time(),
        **{name: getattr(state, name) for name in _AS_NOTED},
    )


class Unwritten(NamedTuple):
    """Why a miss left no entry: fields of a request; nothing in `reason` if it left one."""

    reason: str = ""
    detail: str = ""
    value: float | None = None
    limit: float | None = None


def why_not_written(state: RequestState) -> Unwritten:
    """Return the reason why a miss left no entry."""
    lookup = _before_the_compile(state)
    if lookup is not None:
        return lookup
    if not state.asked_to_write:
        return Unwritten(events.OTHER_PROCESS)
    if state.write_error:
        return Unwritten(events.ERROR, state.write_error)
    if not state.put:
        return _write_refused(state)
    smallest = int(setting("persistent_cache_min_entry_size_bytes"))
    if state.entry_bytes < smallest:
        return Unwritten(events.BELOW_SIZE, value=state.entry_bytes, limit=smallest)
    if state.found_room:
        return Unwritten()
    if state.in_place:
        if state.read_error:
            return Unwritten(events.UNREADABLE_IN_PLACE, state.read_error)
        checks = jax_names.checks_contents(jax_names.cache_in_use())
        return Unwritten(events.CHECKED if checks else events.ALREADY_THERE)
    cap = jax_names.cap_in_use(jax_names.cache_in_use())
    if 0 <= cap < state.entry_bytes:
        return Unwritten(events.OVER_CAP, value=state.entry_bytes, limit=cap)
    return Unwritten(events.ERROR, events.NO_FILE)


def _before_the_compile(state: RequestState) -> Unwritten | None:
    if state.used is False:
        if not state.enabled:
            return Unwritten(events.DISABLED, events.SWITCHED_OFF, limit=_shortest_s())
        able = jax_names.can_serialise(state.backend)
        why = events.OFF_AT_FIRST_USE if able else events.CANNOT_SERIALISE
        return Unwritten(events.DISABLED, why, limit=_shortest_s())
    if state.key_error:
        return Unwritten(events.ERROR, state.key_error)
    if persistent_cache(state.backend) is None:
        if not setting("compilation_cache_dir"):
            return Unwritten(events.NO_DIRECTORY, limit=_shortest_s())
        return Unwritten(events.UNUSABLE_DIRECTORY, state.read_error, limit=_shortest_s())
    return None


def _write_refused(state: RequestState) -> Unwritten:
    number = process_id()
    if number != 0:
        return Unwritten(events.NOT_PROCESS_0, value=number)
    shortest_s = _shortest_s()
    if state.jax_compile_s < shortest_s:
        return Unwritten(events.BELOW_TIME, value=state.jax_compile_s, limit=shortest_s)
    if state.host_callbacks:
        return Unwritten(events.HOST_CALLBACK)
    return Unwritten(events.ERROR, events.NOT_TRIED)


def _shortest_s() -> float:
    return float(setting("persistent_cache_min_compile_time_secs"))


def _directory() -> tuple[str, str]:
    """Return the directory that JAX uses, as an absolute path, and as set where it is relative."""
    cache = jax_names.cache_in_use()
    path = str(setting("compilation_cache_dir") or "") if cache is None else str(cache._path)
    if not path or "://" in path:
        return path, ""
    return os.path.abspath(path), "" if os.path.isabs(path) else path


def overridden() -> tuple[Overridden, ...]:
    """Return the cache's settings of the environment that are not the ones that JAX uses."""
    settings = []
    for name in jax_names.CACHE_CONFIG:
        text, value = os.environ.get(f"JAX_{name.upper()}"), setting(name)
        if text and not _is_same(text, value):
            settings.append(Overridden(f"jax_{name}", text, str(value)))
    return tuple(settings)


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
    settings = []
    if not path or type(cache._path)(path) != cache._path:
        settings.append(Late("jax_compilation_cache_dir", str(path or ""), str(cache._path)))
    if cap != jax_names.cap_in_use(cache):
        used = str(jax_names.cap_in_use(cache))
        settings.append(Late("jax_compilation_cache_max_size", str(cap), used))
    if not setting("enable_compilation_cache"):
        settings.append(Late("jax_enable_compilation_cache", "False", "True"))
    return tuple(settings)
