"""The words of what the persistent cache did: reasons, thresholds, settings without effect."""

from __future__ import annotations

from harness.records.units import seconds_text
from harness.watch import events

SETTINGS = {
    events.BELOW_TIME: "jax_persistent_cache_min_compile_time_secs",
    events.BELOW_SIZE: "jax_persistent_cache_min_entry_size_bytes",
    events.OVER_CAP: "jax_compilation_cache_max_size",
    events.CHECKED: "jax_compilation_cache_check_contents",
    events.NO_DIRECTORY: "jax_compilation_cache_dir",
}
"""What decides that a miss is not written."""

DETAILS = {
    events.SWITCHED_OFF: "jax_enable_compilation_cache is off",
    events.OFF_AT_FIRST_USE: "it was off at the first compile, which freezes it",
    events.CANNOT_SERIALISE: "this backend cannot serialise executables",
    events.NOT_TRIED: "JAX did not try to write",
    events.NO_FILE: "JAX reported no error, and no file was left",
}
"""For each code of a request's detail; any other is an error's own text."""


def reason_text(reason: str, detail: str = "", limit: float | None = None) -> str:
    """Return why a miss was not written, with the setting that decides it and what is known."""
    about = [SETTINGS.get(reason, ""), limit_text(reason, limit), DETAILS.get(detail, detail)]
    more = ", ".join(filter(None, about))
    return f"{reason} ({more})" if more else reason


def limit_text(reason: str, limit: float | None) -> str:
    """Return the threshold that decided a reason; empty without one."""
    if limit is None:
        return ""
    return seconds_text(limit) if reason == events.BELOW_TIME else f"{limit:g} bytes"
