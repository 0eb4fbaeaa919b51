"""Every private name of JAX that a profile stands on, and what differs between its releases.

Written for jax 0.10.2, 0.11.2 and 0.12.0.1, in which all of these are called as attributes of
their modules or classes. A call on the fast path, in JAX's C++, passes none of them, and costs
what it always costs.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.watch.log import ProfileError

REPLACED = {
    "infer_params": ("pjit", "_infer_params"),
    "run": ("pjit", "_run_python_pjit"),
    "call_jaxpr": ("pjit", "_pjit_call_impl_python"),
    "lower": ("pjit", "_resolve_and_lower"),
    "compile": ("interpreters.pxla", "MeshComputation.compile"),
    "traced": ("interpreters.partial_eval", "test_event"),
    "lowered": ("interpreters.mlir", "lower_jaxpr_to_module"),
    "clear_all": ("util", "clear_all_caches"),
    "evict": ("pjit", "jit_evict_fn"),
    "evict_method": ("lib", "_jax.PjitFunction.clear_cache"),
}
"""Role to module and attribute, of what is replaced while a profile is recorded.

`jax.jit` sets `clear_cache` of its C++ type to `jit_evict_fn` again at every call, so that both
are replaced.
"""

TRACED = "trace_to_jaxpr"
"""What JAX notes whenever it really traces, nested or not."""

OTHER_SETTINGS = (
    "jax_platforms",
    "jax_compilation_cache_dir",
    "jax_enable_compilation_cache",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_disable_most_optimizations",
    "jax_optimization_level",
    "jax_memory_fitting_level",
    "jax_exec_time_optimization_effort",
    "jax_memory_fitting_effort",
)
"""Settings that change what is compiled, and that JAX does not look at in its own caches."""

FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")


@dataclass
class Point:
    """A function of JAX, and the module or class that has it as an attribute."""

    holder: Any
    name: str
    function: Any


def version(package: str = "jax") -> str:
    """Return the version of an installed package."""
    return importlib.metadata.version(package)


def points() -> dict[str, Point]:
    """Return what is to be replaced, by role.

    Raises:
        ProfileError: if the running JAX lacks a name.
    """
    import jax

    jax.jit(_nothing)  # gives the C++ type its methods, where nothing was jitted so far
    found, missing = {}, []
    for role, (module, name) in REPLACED.items():
        try:
            of, _, last = name.rpartition(".")
            holder = importlib.import_module(f"jax._src.{module}")
            holder = operator.attrgetter(of)(holder) if of else holder
            found[role] = Point(holder, last, getattr(holder, last))
        except (ImportError, AttributeError):
            missing.append(f"jax._src.{module}.{name}")
    if missing:
        raise ProfileError(
            f"The profile does not know jax {version()}: it lacks {', '.join(missing)}. It was "
            "written for jax 0.10.2 to 0.12.0.1; use one of those, or a newer jax-harness."
        )
    return found


def _nothing() -> None:
    """Stand in for a function to jit; never called."""


def trace_is_clean() -> Callable[[], bool]:
    """Return JAX's own test of whether nothing is being traced on this thread."""
    clean: Callable[[], bool] = importlib.import_module("jax._src.core").trace_state_clean
    return clean


def hide(file: str) -> None:
    """Have JAX take a file for its own: no line of it becomes the source of an operation.

    Without it, operations of a program would be said to come from the profile, which changes the
    locations in what JAX lowers.
    """
    info = importlib.import_module("jax._src.source_info_util")
    if file not in info._exclude_paths:
        info.register_exclusion(file)
    # Out of the tracebacks that a user sees, too; this one JAX cannot undo.
    tracebacks = importlib.import_module("jax._src.traceback_util")
    if file not in tracebacks._exclude_paths:
        tracebacks.register_exclusion(file)


def show(file: str) -> None:
    """Undo :func:`hide`, as far as JAX can."""
    info = importlib.import_module("jax._src.source_info_util")
    if file in info._exclude_paths:
        info._exclude_paths.remove(file)
        info._exclude_path_regex.cache_clear()


class Settings:
    """JAX's configuration as a thread sees it, read cheaply."""

    def __init__(self) -> None:
        self._config = importlib.import_module("jax._src.config")
        self._names = tuple(str(name) for name in self._config.trace_context_names())
        found = {name: self._state(name) for name in OTHER_SETTINGS if name not in self._names}
        self._others = tuple(name for name, state in found.items() if state is not None)
        self._states = tuple(found[name] for name in self._others)
        self._known: dict[Any, dict[str, str]] = {}

    def now(self) -> dict[str, str]:
        """Return what is part of a cache's key, and what else changes what is compiled."""
        values = self._config.trace_context()
        rest = tuple([state.value for state in self._states])
        rest += tuple([os.environ.get(name) for name in FLAGS])
        try:
            known = self._known.get((values, rest))
        except TypeError:  # something in it has no hash
            return self._texts(values, rest)
        if known is None:
            if len(self._known) > 1_000:
                self._known.clear()
            known = self._known[values, rest] = self._texts(values, rest)
        return known

    def _texts(self, values: Any, rest: Any) -> dict[str, str]:
        texts = {name: _text(value) for name, value in zip(self._names, values, strict=False)}
        for name, value in zip(self._others + FLAGS, rest, strict=True):
            if value is not None:
                texts[name] = str(value)
        return texts

    def _state(self, name: str) -> Any:
        state = getattr(self._config, name.removeprefix("jax_"), None)
        return state if hasattr(state, "value") else None


def _text(value: Any) -> str:
    """Return a setting as text that is the same for equal settings, in every process."""
    if type(value).__name__ == "AxisEnv":  # has no text of its own
        sizes = getattr(value, "axis_sizes", {})
        return ", ".join(f"{name}={size}" for name, size in dict(sizes).items())
    if type(value).__name__ == "XlaMetadata":  # nor has this
        return ", ".join(f"{name}={setting}" for name, setting in sorted(value.val.items()))
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text


def tracing() -> bool:
    """Return whether this thread is inside a function that JAX is tracing."""
    return not importlib.import_module("jax._src.core").trace_ctx.is_top_level()
