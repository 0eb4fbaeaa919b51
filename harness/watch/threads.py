"""Visits to JAX's slow path, as they lie in each other on a thread, until they are reported.

What was only traced inside another visit belongs to the outer one; what was lowered or compiled in
there is a build of its own.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any

from harness.watch import call_sites
from harness.watch.description import Describer
from harness.watch.events import Kind
from harness.watch.source import EventSource
from harness.watch.visit import JaxVisit

clock = time.perf_counter_ns

MOST_INNER = 1_000
"""Traces inside another that are kept of one build."""

CHECK_NS = 50_000_000
"""How often a visit in which others take place is seen to be really going on."""


class Threads(EventSource[Any]):
    """What is going on in each thread; who listens is a recorder, or takes the same calls."""

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[int, JaxVisit] = {}
        """Thread to the innermost visit that is going on there: other threads may look."""
        self.describer = Describer(self.failed)
        self._muted: set[int] = set()
        """Threads in which a value is being looked at, which may call JAX itself."""
        self._ids = itertools.count(1)

    def current(self) -> JaxVisit | None:
        """Return the innermost visit that is going on in this thread."""
        return self.open.get(get_ident())

    def off(self) -> bool:
        """Return whether what happens in this thread is not to be noted."""
        return not self.active or (bool(self._muted) and get_ident() in self._muted)

    def failed(self, error: Exception) -> None:
        """Count a failure of the noting."""
        for listener in self.listeners:
            listener.failed(error)

    def after_fork(self) -> None:
        """Forget, in a child, what other threads of the parent were at."""
        here = get_ident()
        self.open = {here: self.open[here]} if here in self.open else {}

    def _enter(self, kind: Kind, frame: FrameType) -> JaxVisit:
        thread, now = get_ident(), clock()
        outer = self.open.get(thread)
        if outer is not None and now - outer.checked_ns > CHECK_NS:
            outer = self._still_going_on(outer, frame, now)
        visit = JaxVisit(kind, now, thread)
        visit.outer, visit.frame, visit.checked_ns = outer, frame, now
        self.open[thread] = visit
        return visit

    def _still_going_on(
        self, visit: JaxVisit | None, frame: FrameType, now: int
    ) -> JaxVisit | None:
        """Leave out visits whose end was missed: an exception came while the hooks were at it."""
        running = set()
        above: FrameType | None = frame
        while above is not None:
            running.add(above)
            above = above.f_back
        while visit is not None and visit.frame not in running:
            visit = visit.outer
        if visit is not None:
            visit.checked_ns = now
        return visit

    def _leave(self, visit: JaxVisit) -> None:
        if visit.outer is None:
            self.open.pop(visit.thread, None)
        else:
            self.open[visit.thread] = visit.outer

    def _settle(self, visit: JaxVisit) -> None:
        """Report a visit that is over, or count it to the one in which it took place."""
        visit.end_ns = clock()
        outer = visit.outer
        if outer is not None and not visit.by_itself:
            self._fold(visit, outer)
            return
        visit.stack = call_sites.places(visit.frame)
        visit.frame = None
        if not visit.built and not visit.held:
            for listener in self.listeners:
                listener.visited(visit)
            return
        self._place(visit, outer)

    def _fold(self, visit: JaxVisit, outer: JaxVisit) -> None:
        if visit.traced or visit.nested:
            outer.nested += visit.traced + visit.nested
            if len(outer.inner) < MOST_INNER:
                if visit.function is not None and self.describer.is_the_users(visit.function):
                    key = self.describer.function_of(visit)
                    outer.inner += ((key, visit.begin_ns, visit.end_ns, visit.traced),)
                outer.inner += visit.inner
        for held in visit.held:
            self._place(held, outer)

    def _place(self, build: JaxVisit, around: JaxVisit | None) -> None:
        """Report a build, once the number of the one is known in whose stage it took place."""
        while around is not None and not around.stage:
            around = around.outer
        if around is None:
            self._report(build, 0)
        elif around.outer is None or around.by_itself:
            around.id = around.id or next(self._ids)
            self._report(build, around.id)
        else:
            around.held += (build,)

    def _report(self, build: JaxVisit, parent: int) -> None:
        begin = clock()
        build.parent = parent
        build.id = build.id or next(self._ids)
        self._muted.add(build.thread)
        try:
            self.describer.describe(build)
        finally:
            self._muted.discard(build.thread)
        build.own_ns += clock() - begin
        for listener in self.listeners:
            listener.built(build)
        for held in build.held:
            self._report(held, build.id)

    def _guarded(self, note: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return note(*arguments)
        # Whatever goes wrong in here is the profile's own affair.
        except Exception as error:
            self.failed(error)
            return None

    def _finish(self, visit: JaxVisit) -> None:
        self._leave(visit)
        self._settle(visit)
