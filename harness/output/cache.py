"""The words of what the persistent cache did: reasons, thresholds, settings without effect."""

from __future__ import annotations

from collections.abc import Iterator

from harness.cache.ledger import Summary
from harness.cache.saved import CacheSetting
from harness.jaxhooks import events
from harness.records.units import counted, seconds_text

SHOWN_ERRORS = 3

NO_CACHE_SAVES = (
    "no cache saves trace and lower, which `harness profile` measures: trace less (a loop as "
    "lax.scan or lax.fori_loop), or load a program that jax.export or "
    "jax.experimental.serialize_executable stored"
)

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
    """Return the threshold that decided a reason; empty where none did."""
    if limit is None or reason not in (events.BELOW_TIME, events.BELOW_SIZE, events.OVER_CAP):
        return ""
    return seconds_text(limit) if reason == events.BELOW_TIME else f"{limit:g} bytes"


_HOW = {
    "set": "{variable}={value}{now} would save {saves} at each later start{of}.",
    "early": "{name} was set to {value} too late: set before the first compile, it would save "
    "{saves} at each later start{of}.",
    "program": "The program sets {name} to {now_alone} itself; {value} there would save {saves} at "
    "each later start{of}.",
    "lock": "{saves} went into waiting for the lock of a directory with a size cap, which no "
    "directory without a cap has ({variable}={value}).",
}


def setting_text(one: CacheSetting) -> str:
    """Return what a setting would save, with its value and the one in effect."""
    least = "at most " if one.at_most else ""
    saves = f"{least}{seconds_text(one.saves_s)}" if one.count else "nothing by itself"
    if one.how == "lock":
        saves = seconds_text(one.saves_s)
    return _HOW[one.how].format(
        name=one.setting,
        variable=one.setting.upper(),
        value=one.value,
        now=f" (now {one.now})" if one.now else "",
        now_alone=one.now or "nothing",
        saves=saves,
        of=f" ({counted(one.count, 'program')})" if one.count else "",
    )


def problem_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each kind of problem of the cache, if there was one."""
    if summary.read_errors or summary.write_errors:
        yield f"errors: {summary.read_errors} reading, {summary.write_errors} writing"
        yield from (f"  {text}" for text in summary.errors[:SHOWN_ERRORS])
        yield "  `harness cache doctor DIR` checks the directory, and this user's rights there."
    for one in summary.overridden:
        yield (
            f"{one.name.upper()}={one.variable} has no effect: JAX uses {one.value or 'none'}. The "
            f"program sets {one.name} itself, or the variable was set after `import jax`."
        )
    for change in summary.late:
        yield (
            f"{change.name} was set to {change.value or 'none'} without effect: the cache's "
            f"settings are frozen at its first use, and JAX goes on with {change.used}. Set it "
            "before the first compile."
        )
    for path in summary.relative:
        yield (
            f"jax_compilation_cache_dir is {path}, relative to where the program is started: from "
            "another folder it is another directory. Give an absolute path."
        )
    if summary.before_directory:
        yield (
            f"{counted(summary.before_directory, 'request')} came before "
            "jax_compilation_cache_dir was set: set it before the first compile."
        )
    if summary.unproven_keys:
        yield (
            f"Not explained by the captured components: {counted(summary.unproven_keys, 'key')}; "
            "`harness cache explain` may miss a cause."
        )
