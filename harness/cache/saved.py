"""What the persistent cache saved, and what each of its settings would."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.jaxhooks import events as codes
from harness.jaxhooks.events import Request

DIRECTORY = "jax_compilation_cache_dir"
LEAST_S = "jax_persistent_cache_min_compile_time_secs"
LEAST_BYTES = "jax_persistent_cache_min_entry_size_bytes"
MOST_BYTES = "jax_compilation_cache_max_size"
ENABLED = "jax_enable_compilation_cache"
CHECKS = "jax_compilation_cache_check_contents"

USUAL_S = 1.0
"""JAX's default of `jax_persistent_cache_min_compile_time_secs`: what compiles faster is not
stored."""

LEAST_WAIT_NS = 1_000_000
"""A shorter wait for a lock is no waiting."""


def cold_seconds(events: Iterable[Request]) -> dict[str, float]:
    """Return the median seconds in XLA of every key that some process compiled."""
    by_key: dict[str, list[float]] = {}
    for event in events:
        if event.key and event.compile_ns and event.outcome != "failed":
            by_key.setdefault(event.key, []).append(event.compile_ns / 1e9)
    return {key: statistics.median(seconds) for key, seconds in by_key.items()}


def saved_s(event: Request, cold: dict[str, float]) -> float | None:
    """Return the compile seconds that a hit saved; None for a miss or without a cold figure."""
    if event.outcome != "hit" or event.key not in cold:
        return None
    return cold[event.key] - event.load_ns / 1e9


@dataclass(frozen=True)
class CacheSetting:
    """What one setting of the cache would save at each later start of the same program.

    Attributes:
        setting: JAX's name of it.
        value: what to set it to; `DIR` for any directory.
        saves_s: seconds in XLA, less loading as far as a hit of this recording says how long.
        count: the requests that would then be hits, or not wait.
        now: the value in effect, or nothing.
        how: `set`; `early` where it was set, after the cache's first use had frozen it, or after
            the first compile; `program` where the program sets it, and a variable has no effect;
            `lock` where it is only waiting that it saves.
        at_most: whether no hit says how long loading takes.
    """

    setting: str
    value: str
    saves_s: float
    count: int
    now: str = ""
    how: Literal["set", "early", "program", "lock"] = "set"
    at_most: bool = False


def cache_settings(requests: Sequence[Request]) -> list[CacheSetting]:
    """Return what settings would save; where there is no cache, the threshold beyond a directory.

    A setting that saves nothing by itself, and is needed for another, is among them.
    """
    made = _Settings(requests)
    used = next((one.directory for one in reversed(requests) if one.directory), "")
    made.off(made.of(codes.NO_DIRECTORY), DIRECTORY, used or "DIR", "", bool(used))
    unusable = made.of(codes.UNUSABLE_DIRECTORY)
    made.off(unusable, DIRECTORY, "DIR", unusable[0].directory if unusable else "")
    for detail in (codes.SWITCHED_OFF, codes.OFF_AT_FIRST_USE):
        group = [one for one in made.of(codes.DISABLED) if one.detail == detail]
        made.off(group, ENABLED, "True", "False", detail == codes.OFF_AT_FIRST_USE)
    for reason, setting, value in (
        (codes.BELOW_TIME, LEAST_S, "0"),
        (codes.BELOW_SIZE, LEAST_BYTES, "-1"),
        (codes.OVER_CAP, MOST_BYTES, "-1"),
        (codes.CHECKED, CHECKS, "False"),
    ):
        if group := made.of(reason):
            limits = sorted({one.limit for one in group if one.limit is not None})
            made.add(setting, value, group, ", ".join(f"{limit:g}" for limit in limits))
    waited = [one for one in requests if one.lock_wait_ns >= LEAST_WAIT_NS]
    if waited:
        waited_s = sum(one.lock_wait_ns for one in waited) / 1e9
        made.found.append(CacheSetting(MOST_BYTES, "-1", waited_s, len(waited), how="lock"))
    return made.found


class _Settings:
    """The settings that were found so far, of some requests."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.found: list[CacheSetting] = []
        self._by_reason: dict[str, list[Request]] = {}
        for request in requests:
            if request.outcome == "unwritten" and request.compile_ns:
                self._by_reason.setdefault(request.reason, []).append(request)
        loads_ns = [one.load_ns for one in requests if one.outcome == "hit" and one.load_ns]
        self._load_ns = statistics.median(loads_ns) if loads_ns else None
        self._of_program = {one.name for request in requests for one in request.overridden}

    def of(self, reason: str) -> list[Request]:
        """Return what was compiled and not written for a reason."""
        return self._by_reason.get(reason, [])

    def add(
        self, setting: str, value: str, group: Sequence[Request], now: str, early: bool = False
    ) -> None:
        """Add a setting with which requests would be hits."""
        at_most = self._load_ns is None
        saves_ns = sum(max(0, one.compile_ns - (self._load_ns or 0)) for one in group)
        how: Literal["set", "early", "program"] = "set"
        if early:
            how = "early"
        elif setting in self._of_program:
            how = "program"
        self.found.append(
            CacheSetting(setting, value, saves_ns / 1e9, len(group), now, how, at_most)
        )

    def off(
        self, group: Sequence[Request], setting: str, value: str, now: str, early: bool = False
    ) -> None:
        """Add what switches a cache on; and the threshold, for what compiles faster than that."""
        if not group:
            return
        least_s = group[0].limit
        least_s = USUAL_S if least_s is None else least_s
        self.add(
            setting, value, [one for one in group if one.compile_ns >= least_s * 1e9], now, early
        )
        if fast := [one for one in group if one.compile_ns < least_s * 1e9]:
            self.add(LEAST_S, "0", fast, f"{least_s:g}")
