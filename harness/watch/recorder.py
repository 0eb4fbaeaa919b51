"""Record a profile of this process: the hooks' builds become lines of a log."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal

import msgspec

from harness.watch import call_sites, events, process, watching
from harness.watch.call_sites import Places
from harness.watch.describing import Described, FunctionKey
from harness.watch.events import Build, Ended, Function, Line, Origin, Span, Started
from harness.watch.hooks import Hooks
from harness.watch.ledger.request import text_of
from harness.watch.log import Writer
from harness.watch.opened import Open
from harness.watch.visits import Counted

clock = time.perf_counter_ns

How = Literal["command", "context", "fork", "pytest"]

MOST_FAILURES = 20

Stacked = tuple[tuple[CodeType, int], ...]
"""What `call_sites.frames` returns."""

_encoder = msgspec.json.Encoder()


class Recorder:
    """Writes down what the hooks see, from `start` to `stop`."""

    def __init__(self, folder: Path | None, how: How):
        self.writer = Writer(folder)
        self.how: How = how
        self.hooks = Hooks()
        """Those of the process, once it has started."""
        self.failures: list[str] = []
        self.failed_times = 0
        self.test = ""
        self.own_ns = 0
        self._begin()

    def _begin(self) -> None:
        self._tables: dict[str, dict[Any, int]] = {}
        self._places: dict[tuple[int, ...], tuple[int, Places]] = {}
        self._visits = Counted(self._write_visits, clock())
        self.lock = threading.RLock()
        self._since_ns = clock()

    def start(self) -> None:
        """Open the log, say who is recording, and put the hooks in place.

        Raises:
            ProfileError: if the log cannot be written, or this JAX is not known.
            LedgerError: if this JAX is not known to the ledger.
        """
        self.writer.open()
        self.writer.write(self.started())
        self._since_ns = clock()
        try:
            self.hooks = watching.start(self)
        except BaseException:
            self.writer.close()
            raise

    def stop(self, why: Literal["exit", "context", "exec"]) -> None:
        """Take the hooks away, if nobody else records, and end the log."""
        watching.stop(self)
        with self.lock:
            try:
                self._visits.flush(clock())
                self._write_running()
            except Exception as error:  # nothing of ours may reach the program
                self.failed(error)
            self.writer.write(
                Ended(clock(), why, self.own_ns, self.writer.lost, tuple(self.failures))
            )
            self.writer.close()

    def started(self) -> Started:
        """Return the first line of a log."""
        return Started(**process.started(self.how))

    def running(self, build: Open) -> None:
        """Write down that a build of another thread is still going on."""
        with self.lock:
            line = events.Running(
                self._key(self.hooks.describer.function_of(build)),
                build.stage,
                self._stack(build.frame),
                build.thread,
                build.begin_ns,
                clock(),
            )
            self.writer.write(line)

    def sampled(self, interval_ns: int, counts: Mapping[tuple[int, Stacked, Origin], int]) -> None:
        """Write down how often each thread was seen where, outside builds."""
        with self.lock:
            numbered = tuple(
                (thread, self._frames(call_sites.described(found)), whose, count)
                for (thread, found, whose), count in counts.items()
            )
            self.writer.write(events.Samples(interval_ns, clock(), numbered))

    # --- what the hooks report --------------------------------------------------------------------

    def failed(self, error: Exception) -> None:
        """Count a failure of the profile's own."""
        self.failed_times += 1
        text = text_of(error)
        if text not in self.failures and len(self.failures) < MOST_FAILURES:
            self.failures.append(text)

    def built(self, build: Open) -> None:
        """Write a build down, if it began while this recorder was there."""
        if build.begin_ns < self._since_ns:
            return
        begin = clock()
        found: Described = build.described
        with self.lock:
            arguments = (found.tree, found.leaves, found.statics)
            line = Build(
                build.id,
                build.kind,
                self._key(found.function),
                found.object,
                found.wrapper,
                self._stack_of(build.stack),
                build.thread,
                build.begin_ns,
                build.end_ns,
                tuple(Span(*span) for span in build.spans),  # type: ignore[arg-type]
                self._arguments(arguments),
                self._settings(found),
                build.requests,
                tuple(events.Inner(self._key(key), *rest) for key, *rest in build.inner),
                found.program,
                build.error,
                self.test,
                build.own_ns + clock() - begin,
                build.parent,
                build.nested,
                found.derived,
            )
            self.writer.write(line)
            self.own_ns += build.own_ns + clock() - begin

    def visited(self, visit: Open) -> None:
        """Count a visit to the slow path in which nothing was built."""
        if visit.begin_ns < self._since_ns:
            return
        key = self.hooks.describer.function_of(visit)
        with self.lock:
            self._visits.add(key, visit.stack, visit.thread, visit.begin_ns, visit.end_ns)
            self.own_ns += clock() - visit.end_ns

    def cleared(self, what: str, function: Any, frame: FrameType) -> None:
        """Write down that a cache of JAX's was emptied."""
        with self.lock:
            number = self._function(function) if function is not None else 0
            self.writer.write(events.Cleared(what, number, self._stack(frame), clock()))

    def _write_visits(
        self, function: FunctionKey, stack: Places, thread: int, count: int, seconds: float
    ) -> None:
        numbers = self._key(function), self._stack_of(stack)
        self.writer.write(events.Visits(*numbers, thread, count, seconds))

    def _write_running(self) -> None:
        """Write what other threads are still at, which will have no end."""
        here = threading.get_ident()
        for thread, build in list(self.hooks.open.items()):
            if thread != here and build.stage and build.begin_ns >= self._since_ns:
                self.running(build)

    # --- what is written once -----------------------------------------------------------------

    def _number(self, table: str, key: Any, make: Callable[[int], Line]) -> int:
        known = self._tables.setdefault(table, {})
        number = known.get(key)
        if number is None:
            number = known[key] = len(known) + 1
            self.writer.write(make(number))
        return number

    def _key(self, key: FunctionKey) -> int:
        origin = call_sites.origin_of(key.file) if key.file else None
        place, rest = key[:4], key[4:]
        return self._number("function", key, lambda n: Function(n, *place, origin or "jax", *rest))

    def _function(self, function: Any, build: Open | None = None) -> int:
        visit = build
        if visit is None:
            visit = Open("call", 0, 0)
            visit.function = function
        return self._key(self.hooks.describer.function_of(visit))

    def _stack(self, frame: FrameType | None) -> int:
        return self._stack_of(call_sites.places(frame))

    def _stack_of(self, places: Places) -> int:
        known = self._places.get(places.key)
        if known is None:
            frames = call_sites.described(places.lines())
            number = self._frames(frames)
            # With the code, so that no other takes its address.
            known = self._places[places.key] = (number, places)
        return known[0]

    def _frames(self, frames: tuple[events.Frame, ...]) -> int:
        return self._number("stack", frames, lambda n: events.Stack(n, frames))

    def _arguments(self, what: tuple[Any, Any, Any]) -> int:
        # By digest: a program may call with more arguments than it is wise to keep.
        digest = hashlib.blake2b(_encoder.encode(what), digest_size=16).digest()
        return self._number("arguments", digest, lambda n: events.Arguments(n, *what))

    def _settings(self, found: Described) -> int:
        key = (tuple(found.jit.items()), tuple(found.context.items()))
        return self._number("settings", key, lambda n: events.Settings(n, found.jit, found.context))
