"""Turn what was noted of a request into one event: hit, written, not written and why, or failed."""

from __future__ import annotations

import os
import platform
import time

from harness.watch.ledger import events, jax_internals
from harness.watch.ledger.events import Event, Outcome
from harness.watch.ledger.jax_internals import Internals
from harness.watch.ledger.request import Request, text_of


def event_of(
    request: Request, error: BaseException | None, seconds: float, internals: Internals
) -> Event:
    """Return the event of a finished request."""
    outcome: Outcome = "unwritten"
    reason = detail = ""
    if error is not None:
        outcome = "failed"
        detail = request.compile_error or request.read_error or request.write_error
        detail = detail or text_of(error)
    elif request.loaded:
        outcome = "hit"
    else:
        reason, detail = why_not_written(request, internals)
        if not reason:
            outcome = "written"
    captured = request.captured.get(request.key)
    return Event(
        schema=events.SCHEMA,
        at_s=time.time(),
        pid=os.getpid(),
        host=platform.node(),
        jax=jax_internals.version(),
        module=request.module,
        outcome=outcome,
        key=request.key,
        reason=reason,
        detail=detail,
        directory=internals.directory(),
        request_s=seconds,
        key_s=request.key_s,
        load_s=request.load_s,
        compile_s=request.compile_s,
        write_s=request.write_s,
        lock_wait_s=request.lock_wait_s,
        own_s=request.own_s,
        bytes_in=request.bytes_in,
        bytes_out=(request.entry_bytes or 0) if outcome == "written" else 0,
        entry_bytes=request.entry_bytes,
        stored_compile_s=request.stored_compile_s,
        jax_saved_s=request.jax_saved_s,
        read_error=request.read_error,
        write_error=request.write_error,
        metadata_in_key=request.locations_in_key,
        components=tuple(captured.components) if captured else (),
        components_prove_key=captured.proves(request.key) if captured else True,
    )


def why_not_written(request: Request, internals: Internals) -> tuple[str, str]:
    """Return the reason why a miss left no entry and its numbers; two empty texts if it did."""
    lookup = _before_the_compile(request, internals)
    if lookup is not None:
        return lookup
    if not request.asked_to_write:
        return events.OTHER_PROCESS, "jax_share_binary_between_hosts: process 0 compiled it"
    if request.write_error:
        return events.ERROR, request.write_error
    if not request.put:
        return _write_refused(request, internals)
    smallest = int(internals.setting("persistent_cache_min_entry_size_bytes"))
    size = request.entry_bytes or 0
    if size < smallest:
        return events.BELOW_SIZE, f"{size} < {smallest} bytes"
    if request.found_room:
        return "", ""
    if request.in_place:
        if request.read_error:
            return events.UNREADABLE_IN_PLACE, request.read_error
        return events.ALREADY_THERE, ""
    cap = int(internals.setting("compilation_cache_max_size"))
    if 0 <= cap < size:
        return events.OVER_CAP, f"{size} > {cap} bytes"
    return events.ERROR, "JAX reported no error, and no file was left"


def _before_the_compile(request: Request, internals: Internals) -> tuple[str, str] | None:
    if request.used is False:
        if not request.enabled:
            return events.DISABLED, "jax_enable_compilation_cache is off"
        return events.DISABLED, "this backend cannot serialise executables"
    if request.key_error:
        return events.ERROR, f"no key could be made: {request.key_error}"
    if internals.cache(request.backend) is None:
        if not internals.directory():
            return events.NO_DIRECTORY, "jax_compilation_cache_dir is not set"
        return events.UNUSABLE_DIRECTORY, request.read_error or internals.directory()
    return None


def _write_refused(request: Request, internals: Internals) -> tuple[str, str]:
    number = internals.process_id()
    if number != 0:
        return events.NOT_PROCESS_0, f"process {number}"
    shortest_s = float(internals.setting("persistent_cache_min_compile_time_secs"))
    if request.jax_compile_s < shortest_s:
        return events.BELOW_TIME, f"{request.jax_compile_s:.3f} < {shortest_s:g} s"
    if request.host_callbacks:
        return events.HOST_CALLBACK, "never stored up to jax 0.10.2; stored since 0.11.0"
    return events.ERROR, "JAX did not try to write"
