"""Watch JAX's slow path: what is replaced, and what each replacement notes.

A call that JAX finds in its C++ cache never comes here. Any other goes through `_infer_params`
(trace), `_resolve_and_lower` (lower) and `MeshComputation.compile` (compile), one after the other
on one thread; what happens there is one *visit*, and a *build* if anything was traced, lowered or
compiled.
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from threading import get_ident
from types import FrameType
from typing import Any, Protocol

from harness.errors import ProfileError
from harness.jaxhooks import call_sites, jax_names, requests
from harness.jaxhooks.description import Describer
from harness.jaxhooks.events import Kind, Promoted, Request
from harness.jaxhooks.parts import Parts
from harness.jaxhooks.replacements import Replacements
from harness.jaxhooks.visits import JaxVisit, Promotion

clock = time.perf_counter_ns

MOST_INNER = 1_000
"""Traces inside another, and promoted loops, that are recorded of one build."""

CHECK_NS = 50_000_000
"""How often a visit in which others take place is seen to be really going on."""


class _Receiver(Protocol):
    """Who writes down what :class:`Builds` sees."""

    def failed(self, error: Exception) -> None: ...

    def built(self, build: JaxVisit) -> None: ...

    def called(self, number: int) -> None: ...

    def visited(self, visit: JaxVisit) -> None: ...

    def cleared(self, what: str, function: Any, frame: FrameType) -> None: ...


class Builds(Replacements):
    """The replacements; the method of a role takes JAX's function, and returns what stands for it.

    It hears of the requests to compile that are made in builds. What was only traced inside another
    visit belongs to the outer one; what was lowered or compiled in there is a build of its own.
    """

    parts: Sequence[Parts] = ()
    """Where the parts of keys are stored; nothing as long as keys are not looked at."""

    def __init__(self, describer: Describer, receiver: _Receiver) -> None:
        super().__init__(receiver.failed)
        self.receiver = receiver
        self.open: dict[int, JaxVisit] = {}
        """Thread to the innermost visit that is going on there: other threads may look."""
        self.describer = describer
        self._muted: set[int] = set()
        """Threads in which a value is being looked at, which may call JAX itself."""
        self._ids = itertools.count(1)
        self._pending: dict[int, JaxVisit] = {}
        self._uncalled: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """What was compiled ahead of time and not called so far, with the number of its build."""
        self._loops: dict[int, JaxVisit] = {}
        """Thread to what holds promotions of loops outside jit, which JAX traces before it runs."""

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
            self.receiver.visited(visit)
            return
        self._place(visit, outer)

    def _called(self, executable: Any) -> None:
        number = self._uncalled.pop(executable, 0)
        if number:
            self.receiver.called(number)

    def _fold(self, visit: JaxVisit, outer: JaxVisit) -> None:
        if visit.traced or visit.nested:
            outer.nested += visit.traced + visit.nested
            if len(outer.inner) < MOST_INNER:
                if visit.function is not None and self.describer.is_the_users(visit.function):
                    key = self.describer.function_of(visit)
                    outer.inner += ((key, visit.begin_ns, visit.end_ns, visit.traced),)
                outer.inner += visit.inner
            outer.promotions = (outer.promotions + visit.promotions)[:MOST_INNER]
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
        if build.kind == "compile" and build.executable is not None:
            self._uncalled[build.executable] = build.id
        self._muted.add(build.thread)
        try:
            self.describer.describe(build)
        finally:
            self._muted.discard(build.thread)
        build.own_ns += clock() - begin
        self.receiver.built(build)
        for held in build.held:
            self._report(held, build.id)

    def _finish(self, visit: JaxVisit) -> None:
        self._leave(visit)
        self._settle(visit)

    def install(self) -> None:
        """Put the replacements in place; a ProfileError or LedgerError if this JAX is not known."""
        # It gives JAX's C++ type its methods, where nothing was jitted so far.
        jax_names.public().jit(bool)
        requests.add(self)
        points = jax_names.points(jax_names.BUILDS, "profile", ProfileError)
        self.describer.prepare()
        for role, point in points.items():
            replacement = getattr(self, f"_{role}")(point.function)
            self.replace(point, functools.wraps(point.function)(replacement))
        jax_names.hide(__file__)
        self.active = True

    def uninstall(self) -> None:
        """Put JAX back as it was."""
        super().uninstall()
        requests.drop(self)
        self._pending.clear()
        self._loops.clear()
        jax_names.show(__file__)

    def _make(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def make(*given: Any) -> Any:
            jitted = real(*given)
            if not self.off():
                self.guarded(call_sites.mark_jitted, jitted, sys._getframe(1))
            return jitted

        return make

    def _infer_params(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def infer_params(fun: Any, info: Any, args: Any, kwargs: Any) -> Any:
            if self.off():
                return real(fun, info, args, kwargs)
            outer = self.open.get(get_ident())
            if outer is not None and outer.stage and _is_jaxs(fun) and jax_names.tracing():
                # `jnp.where` and the like in a trace: they come by the thousand, only become part
                # of what is traced, and are nobody's news.
                return real(fun, info, args, kwargs)
            visit = self.guarded(self._begin, fun, info, args, kwargs, sys._getframe(1))
            if visit is None:
                return real(fun, info, args, kwargs)
            try:
                result = real(fun, info, args, kwargs)
            except BaseException as error:
                visit.error = type(error).__name__
                self.guarded(self._inferred, visit, None)
                raise
            self.guarded(self._inferred, visit, result)
            return result

        return infer_params

    def _begin(self, fun: Any, info: Any, args: Any, kwargs: Any, caller: FrameType) -> JaxVisit:
        if self._pending and (unrun := self._pending.pop(get_ident(), None)) is not None:
            self._settle(unrun)  # JAX traced it, and did not run what it had traced
        kind, frame = _entry(caller)
        visit = self._enter(kind, frame)
        visit.function, visit.info, visit.args, visit.kwargs = fun, info, args, kwargs
        if visit.outer is None and getattr(fun, "_apply_primitive", False):
            loops = self._loops.pop(visit.thread, None)
            visit.promotions = loops.promotions if loops else ()
            visit.unjitted = jax_names.jit_disabled(caller)
        visit.stage = "trace"
        visit.stage_begin_ns = clock()
        return visit

    def _inferred(self, visit: JaxVisit, result: Any) -> None:
        if not visit.error:
            visit.params, visit.values = result
        end = clock()
        visit.spans += (("trace", visit.stage_begin_ns, end, visit.traced),)
        visit.stage = ""
        self._leave(visit)
        if visit.error:
            self._settle(visit)
        elif visit.kind == "call":
            self._pending[visit.thread] = visit  # `_run_python_pjit` comes next
        else:
            self.describer.link_trace(visit)
            visit.own_ns += clock() - end
            self._settle(visit)

    def _run(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def run(p: Any, *rest: Any) -> Any:
            visit = self._pending.pop(get_ident(), None) if self._pending else None
            if visit is None or self.off():
                return real(p, *rest)
            if visit.params is not p:
                self.guarded(self._settle, visit)
                return real(p, *rest)
            self.open[visit.thread] = visit
            visit.run_ns = clock()
            return self._to_the_end(visit, real, p, *rest)

        return run

    def _call_jaxpr(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call_jaxpr(*args: Any, jaxpr: Any, name: str, **rest: Any) -> Any:
            if self.off():
                return real(*args, jaxpr=jaxpr, name=name, **rest)
            visit = self.current()
            if visit is not None and not visit.stage and not visit.ran:
                visit.ran, visit.expects = True, "lower"
                if visit.params is not None and jaxpr is not visit.params.params["jaxpr"]:
                    # It was differentiated or batched in between.
                    visit.spans += (("trace", visit.run_ns, clock(), 0),)
                return real(*args, jaxpr=jaxpr, name=name, **rest)
            visit = self.guarded(self._enter, "call", sys._getframe(1))
            if visit is None:
                return real(*args, jaxpr=jaxpr, name=name, **rest)
            visit.name, visit.debug = name, getattr(jaxpr, "debug_info", None)
            visit.values, visit.ran, visit.expects = args, True, "lower"
            return self._to_the_end(visit, real, *args, jaxpr=jaxpr, name=name, **rest)

        return call_jaxpr

    def _lower(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def lower(args: Any, **named: Any) -> Any:
            if self.off():
                return real(args, **named)
            visit = self.current()
            if visit is not None and visit.expects == "lower":
                visit.meta, visit.how, visit.expects = args, named, "compile"
                return self._stage(visit, "lower", real, args, **named)
            visit = self.guarded(self._enter, "lower", sys._getframe(1))
            if visit is None:
                return real(args, **named)
            visit.name, visit.meta, visit.how = str(named.get("name", "")), args, named
            visit.link = self.describer.linked(named.get("jaxpr"))
            visit.debug = getattr(named.get("jaxpr"), "debug_info", None)
            return self._to_the_end(visit, self._stage, visit, "lower", real, args, **named)

        return lower

    def _compile(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def compile(computation: Any, *rest: Any, **named: Any) -> Any:
            if self.off():
                return real(computation, *rest, **named)
            visit = self.current()
            if visit is not None and visit.expects == "compile":
                visit.expects = ""
                return self._stage(visit, "compile", real, computation, *rest, **named)
            visit = self.guarded(self._enter, "compile", sys._getframe(1))
            if visit is None:
                return real(computation, *rest, **named)
            visit.name = str(getattr(computation, "_name", ""))
            visit.options = rest[0] if rest else named.get("compiler_options")
            visit.link = self.describer.linked(computation)
            passed = visit, "compile", real, computation
            return self._to_the_end(visit, self._stage, *passed, *rest, **named)

        return compile

    def _traced(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def test_event(name: str, *arguments: Any) -> Any:
            if name == jax_names.TRACED and (visit := self.current()) is not None:
                if visit.stage == "trace" and not visit.traced:
                    visit.traced = 1
                else:
                    visit.nested += 1
            return real(name, *arguments)

        return test_event

    def _lowered(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def lower_jaxpr_to_module(*arguments: Any, **named: Any) -> Any:
            if (visit := self.current()) is not None:
                visit.lowered += 1
            return real(*arguments, **named)

        return lower_jaxpr_to_module

    def _promote(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def promote(value: Any, before: Any, after: Any) -> Any:
            result = real(value, before, after)
            if result[1] and not self.off():
                thread, loop = get_ident(), call_sites.loop_of(sys._getframe(1))
                outside = JaxVisit("call", 0, thread)
                visit = self.current() or self._loops.setdefault(thread, outside)
                self.guarded(_promoted, visit, loop, before, after)
            return result

        return promote

    def _check_carry(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def check_carry(*given: Any) -> Any:
            visit = self.current() or self._loops.get(get_ident())
            if visit is not None and visit.promotions:
                self.guarded(_traced_again, visit, sys._getframe(1))
            return real(*given)

        return check_carry

    def _first_call(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def create_cpp_call(executable: Any, *rest: Any) -> Any:
            if not self.off():
                self.guarded(self._called, executable)
            return real(executable, *rest)

        return create_cpp_call

    def _clear_all(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def clear_all_caches() -> Any:
            caller = sys._getframe(1)
            what = "backends" if caller.f_code.co_name == "clear_backends" else "jax.clear_caches"
            self.guarded(self._cleared, what, None, caller)
            return real()

        return clear_all_caches

    def _evict(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def clear_cache(jitted: Any) -> Any:
            function = getattr(jitted, "_fun", None)
            self.guarded(self._cleared, "clear_cache", function, sys._getframe(1))
            return real(jitted)

        return clear_cache

    _evict_method = _evict

    def _cleared(self, what: str, function: Any, caller: FrameType) -> None:
        if not self.off():
            self.receiver.cleared(what, function, caller)

    def requested(self, request: Request) -> None:
        """Take a request to compile, on the thread that made it."""
        if self.off():
            return
        visit = self.current()
        if visit is not None:
            visit.requests += (request,)
            visit.compiled += 1
            visit.own_ns += request.own_ns
            return
        end = clock()  # somebody compiles who does not come by JAX's own road
        visit = JaxVisit("compile", end - request.request_ns, get_ident())
        visit.name, visit.requests, visit.compiled = request.module, (request,), 1
        visit.spans += (("compile", visit.begin_ns, end, 1),)
        visit.frame, visit.own_ns = sys._getframe(1), request.own_ns
        self._settle(visit)

    # --- a visit ----------------------------------------------------------------------------------

    def _stage(
        self, visit: JaxVisit, stage: str, real: Callable[..., Any], /, *a: Any, **k: Any
    ) -> Any:
        lower = stage == "lower"
        before = visit.lowered if lower else visit.compiled
        visit.stage = stage
        begin = visit.stage_begin_ns = clock()
        try:
            made = real(*a, **k)
        finally:
            times = (visit.lowered if lower else visit.compiled) - before
            visit.spans += ((stage, begin, clock(), times),)
            visit.stage = ""
        if not lower:
            visit.executable = made
            if visit.kind == "call" and self._uncalled:
                self.guarded(self._called, made)
        elif visit.kind == "lower":
            begin = clock()
            self.guarded(self.describer.link_lower, visit, made)
            visit.own_ns += clock() - begin
        return made

    def _to_the_end(self, visit: JaxVisit, real: Callable[..., Any], /, *a: Any, **k: Any) -> Any:
        try:
            return real(*a, **k)
        except BaseException as error:
            visit.error = type(error).__name__
            raise
        finally:
            self.guarded(self._finish, visit)


def _promoted(visit: JaxVisit, loop: FrameType, before: Any, after: Any) -> None:
    """Note that a value of a loop's carry was promoted; the last of them is when it goes on."""
    last = visit.promotions[-1] if visit.promotions else None
    if last is None or last.frame is not loop:
        if len(visit.promotions) == MOST_INNER:
            return
        last = Promotion(loop, str(before.dtype), str(after.dtype))
        visit.promotions += (last,)
    last.values += 1
    last.begin_ns = clock()


def _traced_again(visit: JaxVisit, loop: FrameType) -> None:
    """Note that a loop whose carry was promoted has its body's second trace."""
    end = clock()
    one = next((one for one in reversed(visit.promotions) if one.frame is loop), None)
    if one is None:
        return
    name, frame, caller = "", loop, call_sites.outside_jax(loop)
    while frame is not caller and frame.f_back is not None:  # `fori_loop` calls `scan`
        if frame.f_code.co_filename == loop.f_code.co_filename:
            name = frame.f_code.co_name
        frame = frame.f_back
    took = end - one.begin_ns
    file, line = frame.f_code.co_filename, frame.f_lineno
    one.done = Promoted(name, file, line, one.before, one.after, one.values, took)
    one.frame = None


def _is_jaxs(function: Any) -> bool:
    """Tell JAX's own functions by the module that they give, which is cheap."""
    try:
        return str(function.__module__).startswith("jax.")
    except Exception:  # an object of the user's own
        return False


def _entry(caller: FrameType) -> tuple[Kind, FrameType]:
    """Tell a call from a trace ahead of time, whoever else has wrapped JAX's function."""
    frame: FrameType | None = caller
    for _ in range(6):
        if frame is None:
            break
        name = frame.f_code.co_name
        if name == "cache_miss":
            return "call", frame
        if name == "jit_trace":
            return "trace", frame
        frame = frame.f_back
    return "trace", caller
