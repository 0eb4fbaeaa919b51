"""Trace, lower and compile a jitted function: the one place that does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import jax

from harness.program.calls import calls
from harness.stages.own_options import jax_stage
from harness.stages.prepared import Prepared, wrap
from harness.stages.registry import STAGES


class Build:
    """A jitted function on its way to a program; what each step made is kept until `forget`.

    `for name, step in build.steps(): step()` makes all of it. What is between two steps, a clock or
    a message, is the caller's.
    """

    def __init__(
        self, jitted: Any, arguments: tuple[Any, ...], static: Mapping[str, Any] | None = None
    ) -> None:
        """Begin with a jitted or pmapped function, its arguments (abstract or not) and static ones.

        JAX finds what it has in memory again unless the function is a fresh one, such as `wrap`
        returns, and `jax.clear_caches()` was called.
        """
        self.jitted = jitted
        self.arguments = arguments
        self.static = static or {}
        # jax.pmap has none (jax 0.10 to 0.12), nor have jitted objects of other libraries.
        self.has_trace = getattr(jitted, "trace", None) is not None
        self.traced: Any = None
        self.lowered: Any = None
        self.compiled: Any = None

    @classmethod
    def of(cls, prepared: Prepared) -> Self:
        """Begin anew with a case: no earlier build shares a cache with this one."""
        return cls(wrap(prepared), prepared.abstract, prepared.keywords)

    def steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield the name and the function of each step in order; `trace` only if there is one."""
        if self.has_trace:
            yield "trace", self.trace
        yield "lower", self.lower
        yield "compile", self.compile

    def trace(self) -> None:
        """Make `traced`, a `jax.stages.Traced`."""
        made = self.jitted.trace(*self.arguments, **self.static)
        self.traced = jax_stage(made, jax.stages.Traced)

    def lower(self) -> None:
        """Make `lowered`, a `jax.stages.Lowered`; of a pmapped function this traces as well."""
        if self.traced is None:
            made = self.jitted.lower(*self.arguments, **self.static)
            self.lowered = jax_stage(made, jax.stages.Lowered)
        else:
            self.lowered = self.traced.lower()

    def compile(self) -> None:
        """Make `compiled`, a `jax.stages.Compiled`."""
        self.compiled = self.lowered.compile()

    def forget(self) -> None:
        """Let go of what was built: nothing of it may answer the next build."""
        self.traced = self.lowered = self.compiled = None


def count_calls(
    prepared: Prepared, announce: Callable[[str], None] = lambda stage: None
) -> dict[str, int]:
    """Trace and lower from nothing in memory, and return Python's calls, by their facts.

    Empty where JAX traced nothing, but gave back what it had.
    """
    jax.clear_caches()
    build = Build.of(prepared)
    counted: dict[str, int] = {}
    for name, step in build.steps():
        if fact := STAGES[name].counted:
            announce(name)
            counted[fact] = calls(step)
    given = build.has_trace and prepared.was_given(build.traced.jaxpr)
    build.forget()
    return {} if given else counted
