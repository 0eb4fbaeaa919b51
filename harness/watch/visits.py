"""Visits to JAX's slow path, as they lie in each other on a thread, until they are reported.

What was only traced inside another visit belongs to the outer one; what was lowered or compiled in
there is a build of its own.
"""

from __future__ import annotations

import itertools
import time
from threading import get_ident
from types import FrameType
from typing import TYPE_CHECKING, Any

from harness.watch import call_sites
from harness.watch.call_sites import Places
from harness.watch.events import Kind, Request
from harness.watch.replacements import Replacements

if TYPE_CHECKING:
    from harness.watch.recorder import Recorder

clock = time.perf_counter_ns

MOST_INNER = 1_000
"""Traces inside another that are kept of one build."""

CHECK_NS = 50_000_000
"""How often a visit in which others take place is seen to be really going on."""


class JaxVisit:
    """What has been seen of a visit so far.

    Programs make these by the hundred thousand: what is not known yet is the class's own default.
    """

    outer: JaxVisit | None = None
    """The visit in which this one takes place, on the same thread."""
    function: Any = None
    """The Python function; None where JAX has only what it traced of one."""
    info: Any = None
    """What `jax.jit` was given."""
    args: Any = ()
    kwargs: Any = None
    name: str = ""
    debug: Any = None
    """JAX's note of where the function is from."""
    params: Any = None
    """JAX's record of what it traced, and for which arguments."""
    values: Any = ()
    """The dynamic arguments, flat."""
    meta: Any = None
    """JAX's types of the arguments with their placement, from lowering."""
    how: Any = None
    """What JAX lowers with: donated arguments, shardings, options."""
    options: Any = None
    """Options that were given to `.compile()`."""
    link: Any = None
    """What is known from an earlier stage, ahead of time."""
    frame: Any = None
    """Where it was asked for, while it is going on."""
    stack: Places = Places()
    """The same, once it is over."""
    stage: str = ""
    stage_begin_ns: int = 0
    expects: str = ""
    """Which stage comes next for this very program: `lower`, `compile`, or none."""
    ran: bool = False
    """Whether JAX came as far as running the program of this visit."""
    run_ns: int = 0
    """When JAX set out to run what it had traced."""
    traced: int = 0
    """Real traces of the function itself."""
    nested: int = 0
    """Real traces of what it calls."""
    lowered: int = 0
    compiled: int = 0
    spans: tuple[tuple[str, int, int, int], ...] = ()
    requests: tuple[Request, ...] = ()
    inner: tuple[tuple[Any, int, int, int], ...] = ()
    held: tuple[JaxVisit, ...] = ()
    """Builds in this visit that wait for its number."""
    executable: Any = None
    described: Any = None
    """What it was of, once it is over."""
    own_ns: int = 0
    error: str = ""
    id: int = 0
    parent: int = 0
    end_ns: int = 0
    checked_ns: int = 0
    """When it was last seen to be really going on."""

    def __init__(self, kind: Kind, begin_ns: int, thread: int) -> None:
        self.kind = kind
        self.begin_ns = begin_ns
        self.thread = thread

    @property
    def built(self) -> bool:
        """Whether anything was traced, lowered or compiled, or was to be."""
        return bool(self.traced or self.nested or self.by_itself or self.error or self.id)

    @property
    def by_itself(self) -> bool:
        """Whether it is more than a trace inside another."""
        return bool(self.lowered or self.compiled)


class Threads(Replacements):
    """What is going on in each thread, for the one recorder that is told of it."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.failed)
        self.recorder = recorder
        self.open: dict[int, JaxVisit] = {}
        """Thread to the innermost visit that is going on there: other threads may look."""
        self.describer = recorder.describer
        self._muted: set[int] = set()
        """Threads in which a value is being looked at, which may call JAX itself."""
        self._ids = itertools.count(1)

    def current(self) -> JaxVisit | None:
        """Return the innermost visit that is going on in this thread."""
        return self.open.get(get_ident())

    def off(self) -> bool:
        """Return whether what happens in this thread is not to be noted."""
        return not self.active or (bool(self._muted) and get_ident() in self._muted)

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
            self.recorder.visited(visit)
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
        self.recorder.built(build)
        for held in build.held:
            self._report(held, build.id)

    def _finish(self, visit: JaxVisit) -> None:
        self._leave(visit)
        self._settle(visit)
