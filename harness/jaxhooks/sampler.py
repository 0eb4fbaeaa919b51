"""Look now and then where the program's threads are, and write down what is still being built.

One thread of its own, that wakes every 25 ms. It must not be felt: where it costs more than half a
per cent of a core, it looks less often.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from types import FrameType
from typing import Protocol

from harness.jaxhooks import call_sites
from harness.jaxhooks.call_sites import Places, owner_of
from harness.jaxhooks.events import Origin
from harness.jaxhooks.visits import JaxVisit

INTERVAL_MS = 25.0
LONG_NS = 500_000_000
"""A build that takes longer is written down while it goes on."""

ANNOUNCE_VARIABLE = "HARNESS_PROFILE_ANNOUNCE_S"
"""After how many seconds a stage is written down at once: somebody waits for that line."""

SHARE = 0.005
"""Of a core, that sampling may take."""

SLOWEST_NS = 1_000_000_000

_WAITED_FOR = {
    "lower": (call_sites.kernel_of, "_stage"),
    "trace": (call_sites.comparison_of, "infer_params"),
}
"""What tells that a stage waits for code that is not JAX's, and the function of ours below it."""

clock = time.perf_counter_ns


class _Receiver(Protocol):
    """Who writes down what a :class:`Sampler` sees."""

    def failed(self, error: Exception) -> None: ...

    def pause_ns(self, since_ns: int | None = None) -> int: ...

    def running(self, build: JaxVisit) -> None: ...

    def sampled(
        self, interval_ns: int, counts: Mapping[tuple[int, Places, Origin], int]
    ) -> None: ...


class Sampler:
    """Samples the threads of this process from `start` to `stop`.

    Args:
        building: thread to the build that goes on there; it may change at any time.
        receiver: who writes down what is seen.
        interval_ms: how often it looks; 0 for never.
    """

    def __init__(
        self,
        building: Mapping[int, JaxVisit],
        receiver: _Receiver,
        interval_ms: float = INTERVAL_MS,
    ) -> None:
        self.building, self.receiver = building, receiver
        self.interval_ns = round(interval_ms * 1e6)
        self.announce_ns = 1e9 * float(os.environ.get(ANNOUNCE_VARIABLE) or "inf")
        self.own_ns = 0
        """Time on a processor, in all."""
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._counts: Counter[tuple[int, Places, Origin]] = Counter()
        self._looked_ns = clock()
        self._reported: dict[int, int] = {}
        """Thread to when its build was last reported as going on."""

    def start(self) -> None:
        """Start to look; nothing where the interval is 0."""
        if self.interval_ns <= 0 or self._thread is not None:
            return
        self._wake = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(self._wake,), name="harness-sampler", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:  # no more threads are allowed, or Python is about to end
            self._thread = None

    def stop(self) -> None:
        """Look no more, and write down what was seen."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._wake.set()
            if thread is not threading.current_thread():
                thread.join(1.0)
            self._flush()

    def _run(self, wake: threading.Event) -> None:
        flushed, spent = clock(), time.thread_time_ns()
        while not wake.wait(self.interval_ns / 1e9):
            try:
                self._look()
                if clock() - flushed >= self.receiver.pause_ns():
                    self._flush()
                    passed, flushed = clock() - flushed, clock()
                    before, spent = spent, time.thread_time_ns()
                    self.own_ns += spent - before
                    if spent - before > SHARE * passed:
                        self.interval_ns = min(2 * self.interval_ns, SLOWEST_NS)
            # The program knows nothing of this thread: no error of it may reach anyone.
            except Exception as error:
                self.receiver.failed(error)
                return
        self.own_ns += time.thread_time_ns() - spent

    def _look(self) -> None:
        now = clock()
        building, before, self._looked_ns = self.building, self._looked_ns, now
        for thread, frame in sys._current_frames().items():
            build = building.get(thread)
            if build is not None:
                self._still_building(build, now)
                waited_for, ours = _WAITED_FOR.get(build.stage, (None, ""))
                if waited_for and (code := waited_for(frame, ours)):
                    build.kernels = build.kernels or {}
                    took = now - max(before, build.stage_begin_ns)
                    build.kernels[code] = build.kernels.get(code, 0) + took
            elif thread != threading.get_ident():
                self._counts[thread, call_sites.places(frame), innermost(frame)] += 1

    def _still_building(self, build: JaxVisit, now: int) -> None:
        reported = self._reported.get(build.thread, 0)
        first = reported < build.begin_ns
        pause_ns = LONG_NS if first else self.receiver.pause_ns(build.begin_ns)
        announced = build.stage and reported < build.stage_begin_ns + self.announce_ns <= now
        if announced or now - max(reported, build.begin_ns) >= pause_ns:
            self._reported[build.thread] = now
            self.receiver.running(build)

    def _flush(self) -> None:
        counts, self._counts = self._counts, Counter()
        if counts:
            self.receiver.sampled(self.interval_ns, counts)


def innermost(frame: FrameType | None) -> Origin:
    """Return whose code a thread is in: of the innermost frame that is not the profile's own."""
    while frame is not None:
        origin = owner_of(frame.f_code)
        if origin is not None:
            return origin
        frame = frame.f_back
    return "library"
