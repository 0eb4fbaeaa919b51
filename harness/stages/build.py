"""Trace, lower and compile a jitted function: the one place that does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

import jax

from harness.jaxhooks import jax_names
from harness.program.calls import calls
from harness.stages import artefact as artefacts
from harness.stages.own_options import jax_stage
from harness.stages.prepared import Prepared, wrap
from harness.stages.registry import STAGES
from harness.stages.scenarios.scenario import Scenario
from harness.workload.workload import SEVERAL_DEVICES


class Build:
    """A jitted function on its way to a program; what each step made is kept until `forget`.

    `for name, step in build.steps(): step()` makes all of it. What is between two steps, a clock or
    a message, is the caller's.
    """

    refused = ""
    """Why nothing can be made here."""

    module = ""
    """The text of the module that XLA was given, once :meth:`keep_program` has been called."""
    serialised: bytes | None = None
    """The program as bytes, empty where XLA has none, once :meth:`serialise` has been called."""

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
        self.around: Callable[[], AbstractContextManager[Any]] = nullcontext
        # jax.pmap has none (jax 0.10 to 0.12), nor have jitted objects of other libraries.
        self.has_trace = getattr(jitted, "trace", None) is not None
        self.traced: Any = None
        self.lowered: Any = None
        self.compiled: Any = None

    @classmethod
    def of(cls, prepared: Prepared) -> Self:
        """Begin anew with a case: no earlier build shares a cache with this one."""
        made = cls(wrap(prepared), prepared.abstract, prepared.keywords)
        if prepared.topology is not None and prepared.case.transform not in SEVERAL_DEVICES:
            made.around = prepared.topology.naming_the_device
        return made

    def steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield the name and the function of each step in order; `trace` only if there is one."""
        if self.has_trace:
            yield "trace", self.trace
        yield "lower", self.lower
        yield "compile", self.compile

    def trace(self) -> None:
        """Make `traced`, a `jax.stages.Traced`."""
        with self.around():
            made = self.jitted.trace(*self.arguments, **self.static)
        self.traced = jax_stage(made, jax.stages.Traced)

    def lower(self) -> None:
        """Make `lowered`, a `jax.stages.Lowered`; of a pmapped function this traces as well."""
        with self.around():
            if self.traced is None:
                made = self.jitted.lower(*self.arguments, **self.static)
                self.lowered = jax_stage(made, jax.stages.Lowered)
            else:
                self.lowered = self.traced.lower()

    def compile(self) -> None:
        """Make `compiled`, a `jax.stages.Compiled`."""
        self.compiled = self.lowered.compile()

    def keep_program(self) -> None:
        """Let go of everything but the program: nothing else may answer the next build."""
        if self.lowered is not None:
            self.module = _text(self.lowered.compiler_ir())
        self.serialise()
        self.traced = self.lowered = None

    def serialise(self) -> None:
        """Make `serialised`, unless that was tried before.

        XLA has no bytes of a program that sorts once it has been called (jax 0.10 to 0.12).
        """
        if self.serialised is None:
            try:
                self.serialised = jax_names.serialised(self.compiled.runtime_executable())
            except Exception:  # of XLA: there are programs that it cannot serialise
                self.serialised = b""

    @contextmanager
    def remembered(self) -> Iterator[list[str]]:
        """Answer with the program where JAX would have XLA compile its module once more.

        JAX does at the first call of a function that it was made to forget, as
        `jax.clear_caches()` before the next case does. Yields the names of the modules that were
        answered so.
        """
        answered: list[str] = []

        def way(compile_module: Callable[..., Any]) -> Callable[..., Any]:
            def answer(client: Any, module: Any, *others: Any, **named: Any) -> Any:
                if not self.module or _text(module) != self.module:
                    return compile_module(client, module, *others, **named)
                answered.append(str(module.operation.attributes["sym_name"]))
                return self.compiled.runtime_executable()

            return answer

        with jax_names.compiling_through(way):
            yield answered

    def forget(self) -> None:
        """Let go of what was built: nothing of it may answer the next build."""
        self.traced = self.lowered = self.compiled = self.serialised = None


def _text(module: Any) -> str:
    """Return the text of an MLIR module without the places in source files."""
    return str(module.operation.get_asm(enable_debug_info=False))


class LoadedBuild(Build):
    """What is loaded of an artefact, on its way to a program, or a program already."""

    def __init__(self, prepared: Prepared, scenario: Scenario, folder: Path) -> None:
        """Check the artefact; nothing is loaded yet."""
        assert scenario.artefact is not None
        super().__init__(None, prepared.abstract)
        self.prepared = prepared
        self.file, self.artefact = artefacts.path(folder, prepared.case.id), scenario.artefact
        self.has_trace = "build" in scenario.steps
        self.refused, self.given = artefacts.refusal(self.file)

    def load(self) -> None:
        """Make `jitted`, what is called, once."""
        if self.jitted is None:
            self.jitted = self.artefact.load(self.file.read_bytes(), self.given)

    def steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield the name and the function of each step in order; of an executable only `load`."""
        if self.has_trace:
            yield from super().steps()
        else:
            yield "load", self.compile

    def trace(self) -> None:
        """Load, and make `traced`."""
        self.load()
        self.traced = self._called(self.jitted.trace)(*self.arguments)

    def compile(self) -> None:
        """Make `compiled`; an executable is loaded for that."""
        if self.has_trace:
            super().compile()
        else:
            self.load()
            self.compiled = self.jitted

    def call(self, *arguments: Any) -> Any:
        """Load, and call what was loaded as the function is called."""
        self.load()
        return self._called(self.jitted)(*arguments)

    def forget(self) -> None:
        """Let go of what was loaded and built."""
        super().forget()
        self.jitted = None

    def _called(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        """Return a verb that takes the function's arguments; static ones are in the artefact."""
        own = self.prepared.own
        if own is None:
            return verb
        positions, names = jax_names.static_arguments(own.function)

        def without_static(*arguments: Any, **keywords: Any) -> Any:
            count = len(arguments)
            static = {n % count for n in positions if -count <= n < count}
            left = [one for n, one in enumerate(arguments) if n not in static]
            return verb(*left, **{name: keywords[name] for name in keywords if name not in names})

        return own.given(without_static)


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
