"""Record a profile of this process: builds become lines of a log."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from harness.jaxhooks import call_sites, events, jax_names
from harness.jaxhooks.builds import Builds
from harness.jaxhooks.call_sites import Places
from harness.jaxhooks.compile_traces import CompileTraces
from harness.jaxhooks.description import Describer, Description, FunctionKey
from harness.jaxhooks.events import Backend, Build, Ended, Function, Line, Origin, Span, Started
from harness.jaxhooks.parts import PARTS, Parts
from harness.jaxhooks.replacements import Replacements, error_text
from harness.jaxhooks.sampler import Sampler
from harness.jaxhooks.visits import JaxVisit
from harness.jaxhooks.writer import Writer

clock = time.perf_counter_ns

Why = Literal["exit", "context", "exec"]

MOST_FAILURES = 20

EVERY_NS = 1_000_000_000
"""How often what goes on is written: visits that built nothing, samples, builds that take long."""

SHARE_OF_RUN = 600
"""Later less often, at one part in so many of the time that has passed: a day has 4,000 lines."""

MOST_PLACES = 50_000
"""Stacks, distinguished by instruction, that have a number at hand."""

MOST_KINDS = 10_000


class _Backends(Replacements):
    """Times how long JAX takes to make its backends, once: a process's first computation waits."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.failed)
        self.write = recorder.write

    def install(self) -> None:
        bridge = jax_names.bridge()
        if bridge.backends_are_initialized():
            return
        real = bridge.backends

        def backends(*args: Any, **kwargs: Any) -> Any:
            begin = clock()
            made = real(*args, **kwargs)
            first, end = self.active, clock()
            self.uninstall()
            if first:
                self.guarded(self._made, bridge, made, begin, end)
            return made

        self.replace(jax_names.Point(bridge, "backends", real), backends)
        self.active = True

    def _made(self, bridge: Any, made: Any, begin: int, end: int) -> None:
        client = getattr(bridge, "_default_backend", None) or next(iter(made.values()))
        devices = tuple(str(device) for device in client.devices())
        self.write(Backend(begin, end, threading.get_ident(), client.platform, devices))


class Recorder:
    """Writes down what JAX builds, from `start` to `stop`, into every output that is open."""

    def __init__(self, sample_ms: float) -> None:
        self.outputs: list[Writer] = []
        self.failures: list[str] = []
        self.describer = Describer(self.failed)
        self.builds = Builds(self.describer, self)
        self.sampler = Sampler(self.builds.open, self, sample_ms)
        self.backends = _Backends(self)
        self.compiles = CompileTraces(self.failed)
        self.test = ""
        self.own_ns = 0
        self.lock = threading.RLock()
        self._referred_to: list[Line] = []
        self._tables: dict[str, dict[Any, int]] = {}
        self._places: dict[tuple[int, ...], tuple[int, Places]] = {}
        self._visits: dict[tuple[FunctionKey, tuple[int, ...], int], tuple[Places, int, int]] = {}
        """The stack of visits of one kind, how many they were, and what they took."""
        self._since_ns = self._visits_written_ns = clock()

    def start(self) -> None:
        """Listen; a ProfileError or LedgerError if this JAX is not known."""
        self._since_ns = clock()
        self.builds.start()
        self.backends.guarded(self.backends.install)
        self.compiles.install()

    def stop(self, why: Why) -> None:
        """Listen no more, and end the outputs."""
        self.sampler.stop()
        self.compiles.uninstall()
        self.backends.uninstall()
        self.builds.uninstall()
        here = threading.get_ident()
        with self.lock:
            try:
                self._write_visits()
                # What other threads are still at will have no end.
                for thread, build in list(self.builds.open.items()):
                    if thread != here and build.stage and build.begin_ns >= self._since_ns:
                        self.running(build)
            except Exception as error:  # nothing of ours may reach the program
                self.failed(error)
            for output in self.outputs:
                self.end(output, why)
            self.outputs = []

    def add(self, output: Writer, first: Started) -> None:
        """Write to one more output: its own first line, and what later lines refer to."""
        with self.lock:
            output.write(first)
            output.since_ns = first.clock_ns
            for line in self._referred_to:
                output.write(line)
            self.write_to([*self.outputs, output])

    def write_to(self, outputs: list[Writer]) -> None:
        """Write to these outputs from now on, and the parts of keys into their folders."""
        self.outputs = outputs
        files = [output.file for output in outputs if output.file is not None]
        self.builds.parts = [Parts(Path(file.folder, PARTS)) for file in files]

    def end(self, output: Writer, why: Why) -> None:
        """Write the last line of one output."""
        own_ns = self.own_ns + self.sampler.own_ns
        output.write(Ended(clock(), why, own_ns, output.lost, tuple(self.failures)))

    def write(self, line: Line) -> None:
        """Write a line to every output; a build to those that were open when it began."""
        with self.lock:
            if isinstance(line, events.ReferredTo):
                self._referred_to.append(line)
            for output in self.outputs:
                if not isinstance(line, Build) or line.begin_ns >= output.since_ns:
                    output.write(line)

    def pause_ns(self, since_ns: int | None = None) -> int:
        """Return how long to wait until what goes on since then is written again.

        See `SHARE_OF_RUN`; without `since_ns` it is the recording itself that goes on.
        """
        begin = self._since_ns if since_ns is None else since_ns
        return max(EVERY_NS, (clock() - begin) // SHARE_OF_RUN)

    def running(self, build: JaxVisit) -> None:
        """Write down that a build of another thread is still going on."""
        with self.lock:
            line = events.Running(
                self._key(self.describer.function_of(build)),
                build.stage,
                self._stack(build.frame),
                build.thread,
                build.begin_ns,
                clock(),
                build.stage_begin_ns,
            )
            self.write(line)

    def sampled(self, interval_ns: int, counts: Mapping[tuple[int, Places, Origin], int]) -> None:
        """Write down how often each thread was seen where, outside builds."""
        with self.lock:
            totals: Counter[tuple[int, int, Origin]] = Counter()
            for (thread, places, whose), count in counts.items():
                totals[thread, self._stack_of(places), whose] += count
            numbered = tuple((*seen, count) for seen, count in totals.items())
            self.write(events.Samples(interval_ns, clock(), numbered))

    # --- what is heard of builds ------------------------------------------------------------------

    def failed(self, error: Exception) -> None:
        """Count a failure of the profile's own."""
        text = error_text(error)
        if text not in self.failures and len(self.failures) < MOST_FAILURES:
            self.failures.append(text)

    def built(self, build: JaxVisit) -> None:
        """Write a build down, if it began while this recorder was there."""
        if build.begin_ns < self._since_ns:
            return
        begin = clock()
        described: Description = build.described
        with self.lock:
            line = Build(
                build.id,
                self._key(described.function),
                described.object,
                described.wrapper,
                self._stack_of(build.stack),
                build.thread,
                build.begin_ns,
                build.end_ns,
                tuple(Span(*span) for span in build.spans),  # type: ignore[arg-type]
                build.kind,
                self._arguments(described.arguments),
                self._settings(described),
                build.requests,
                tuple(events.Inner(self._key(key), *rest) for key, *rest in build.inner),
                described.program,
                build.error,
                self.test,
                build.own_ns + clock() - begin,
                build.parent,
                build.nested,
                described.derived,
                tuple(
                    events.LoweringCall(code.co_filename, code.co_firstlineno, code.co_qualname, ns)
                    for code, ns in (build.kernels or {}).items()
                ),
                tuple(
                    one.done._replace(file=call_sites.cell_name(one.done.file))
                    for one in build.promotions
                    if one.done is not None
                ),
            )
            self.write(line)
            self.own_ns += build.own_ns + clock() - begin

    def called(self, number: int) -> None:
        """Write down that what a build compiled ahead of time is called for the first time."""
        self.write(events.Called(number))

    def visited(self, visit: JaxVisit) -> None:
        """Count a visit to the slow path in which nothing was built."""
        if visit.begin_ns < self._since_ns:
            return
        key = self.describer.function_of(visit)
        with self.lock:
            kind = key, visit.stack.key, visit.thread
            stack, times, took_ns = self._visits.get(kind, (visit.stack, 0, 0))
            self._visits[kind] = stack, times + 1, took_ns + visit.end_ns - visit.begin_ns
            last = visit.end_ns - self._visits_written_ns
            if last > self.pause_ns() or len(self._visits) > MOST_KINDS:
                self._write_visits()
            self.own_ns += clock() - visit.end_ns

    def cleared(self, what: str, function: Any, frame: FrameType) -> None:
        """Write down that a cache of JAX's was emptied."""
        with self.lock:
            number = 0
            if function is not None:
                visit = JaxVisit("call", 0, 0)
                visit.function = function
                number = self._key(self.describer.function_of(visit))
            self.write(events.Cleared(what, number, self._stack(frame), clock()))

    def _write_visits(self) -> None:
        self._visits_written_ns = clock()
        counts, self._visits = self._visits, {}
        for (function, _, thread), (stack, times, took_ns) in counts.items():
            numbers = self._key(function), self._stack_of(stack), thread
            self.write(events.Visits(*numbers, times, took_ns / 1e9))

    # --- what is written once -----------------------------------------------------------------

    def _number(self, table: str, key: Any, make: Callable[[int], Line]) -> int:
        numbers = self._tables.setdefault(table, {})
        number = numbers.get(key)
        if number is None:
            number = numbers[key] = len(numbers) + 1
            self.write(make(number))
        return number

    def _key(self, key: FunctionKey) -> int:
        def line(number: int) -> Function:
            return Function(number, *key._replace(file=call_sites.cell_name(key.file)))

        return self._number("function", key, line)

    def _stack(self, frame: FrameType | None) -> int:
        return self._stack_of(call_sites.places(frame))

    def _stack_of(self, places: Places) -> int:
        numbered = self._places.get(places.key)
        if numbered is None:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            frames = places.frames()
            if len(self._tables.get("stack", ())) >= events.MOST_STACKS:
                # The innermost of the program; of whoever is innermost, where it has none.
                own = [frame for frame in frames if frame.origin == "program"]
                frames = tuple(own[-1:]) or frames[-1:]
            named = tuple(one._replace(file=call_sites.cell_name(one.file)) for one in frames)
            number = self._number("stack", frames, lambda n: events.Stack(n, named))
            # With the code, so that no other takes its address.
            numbered = self._places[places.key] = (number, places)
        return numbered[0]

    def _arguments(self, what: tuple[Any, Any, Any]) -> int:
        # By hash, of 64 bits: a program may call with more arguments than it is wise to keep.
        def line(number: int) -> events.Arguments:
            trees, leaves, statics = what
            return events.Arguments(number, leaves, statics, trees)

        return self._number("arguments", hash(what), line)

    def _settings(self, described: Description) -> int:
        key = (tuple(described.jit.items()), tuple(described.context.items()))
        return self._number(
            "settings", key, lambda n: events.Settings(n, described.jit, described.context)
        )
