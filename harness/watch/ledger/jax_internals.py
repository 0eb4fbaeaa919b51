"""Every private name of JAX that the ledger stands on, and what differs between its releases.

Written for jax 0.10.2, 0.11.2 and 0.12.0.1. Which they differ in, here:

- jax 0.10.2 hands `host_callbacks` to `compiler._cache_write`, which then writes nothing; since
  0.11.0 a program with host callbacks is cached like any other. Arguments are therefore looked up
  by name in the signature of the running release.
- Python functions are replaced as attributes of their modules or classes, because that is how all
  three releases call them; nothing of JAX's own C++ is touched.
- The put of JAX's cache calls `_evict_if_needed`, with a size cap or without, once it holds the
  lock and has found no entry in the place: it then writes. No event of JAX says so.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.errors import HarnessError

_LOCK = ("lru_cache", "filelock.BaseFileLock.acquire")
"""The lock of a directory with a size cap; JAX goes without it where `filelock` is missing."""

_WRAPPED: dict[tuple[str, str], tuple[str, ...]] = {
    ("compiler", "compile_or_get_cached"): ("backend", "computation"),
    ("compiler", "backend_compile_and_load"): (),
    ("compiler", "_cache_write"): ("cache_key", "compile_time_secs"),
    ("compilation_cache", "is_cache_used"): ("backend",),
    ("compilation_cache", "get_executable_and_time"): ("cache_key",),
    ("compilation_cache", "put_executable_and_time"): ("cache_key", "backend"),
    ("compilation_cache", "compress_executable"): ("executable",),
    ("compilation_cache", "decompress_executable"): ("executable",),
    ("cache_key", "get"): ("module",),
    ("cache_key", "_log_cache_key_hash"): ("last_serialized", "hashfn"),
    ("lru_cache", "LRUCache._evict_if_needed"): (),
    _LOCK: (),
}
"""What is replaced while a ledger is open, with the arguments that the ledger reads."""

_READ = {
    "compilation_cache": ("_get_cache",),
    "distributed": ("global_state",),
    "monitoring": (
        "register_event_duration_secs_listener",
        "unregister_event_duration_listener",
    ),
    "config": (
        "compilation_cache_dir",
        "compilation_cache_include_metadata_in_key",
        "compilation_cache_max_size",
        "enable_compilation_cache",
        "persistent_cache_min_compile_time_secs",
        "persistent_cache_min_entry_size_bytes",
    ),
}

SAVED_EVENT = "/jax/compilation_cache/compile_time_saved_sec"


class LedgerError(HarnessError):
    """The ledger cannot be opened, written or read."""


@dataclass(frozen=True)
class Point:
    """A function of JAX, and the module or class that has it as an attribute."""

    holder: Any
    name: str
    function: Callable[..., Any]


@dataclass(frozen=True)
class Internals:
    """The modules of the running JAX, after a check that all that is needed is in them."""

    modules: dict[str, Any]

    def points(self) -> tuple[Point, ...]:
        """Return all that a ledger replaces while it is open, as it stands now."""
        return tuple(
            _point(self.modules[module], name)
            for module, name in _WRAPPED
            if not _has_no_lock(self.modules[module], name)
        )

    def setting(self, name: str) -> Any:
        """Return the value of one of JAX's settings as this thread sees it."""
        return getattr(self.modules["config"], name).value

    def directory(self) -> str:
        """Return the cache's directory, empty where none is set."""
        return str(self.setting("compilation_cache_dir") or "")

    def process_id(self) -> int:
        """Return this process's number in a distributed run, 0 elsewhere."""
        return int(self.modules["distributed"].global_state.process_id)

    def cache(self, backend: Any) -> Any:
        """Return JAX's cache object, None where there is none."""
        return self.modules["compilation_cache"]._get_cache(backend)

    def entry_exists(self, backend: Any, key: str) -> bool:
        """Return whether the cache's directory holds a file for a key."""
        cache = self.cache(backend)
        return bool((cache._path / f"{key}-cache").exists())

    def listen(self, listener: Callable[..., None]) -> None:
        """Have JAX tell a function every duration it records."""
        self.modules["monitoring"].register_event_duration_secs_listener(listener)

    def unlisten(self, listener: Callable[..., None]) -> None:
        """Take the function off again, if nobody has taken all of them off."""
        # It fails where monitoring.clear_event_listeners() was called in the meantime.
        with contextlib.suppress(AssertionError, ValueError):
            self.modules["monitoring"].unregister_event_duration_listener(listener)


@functools.cache
def version() -> str:
    """Return the version of the installed JAX; looking it up takes half a millisecond."""
    return importlib.metadata.version("jax")


def load() -> Internals:
    """Find what the ledger needs in the running JAX.

    Raises:
        LedgerError: if a name or an argument is not there, with JAX's version.
    """
    names = {module for module, _ in _WRAPPED} | set(_READ)
    modules: dict[str, Any] = {}
    missing: list[str] = []
    for name in sorted(names):
        try:
            modules[name] = importlib.import_module(f"jax._src.{name}")
        except ModuleNotFoundError as error:
            if error.name == "jax":
                raise LedgerError(
                    "The ledger watches JAX, and JAX is not installed in this Python. "
                    "Install jax, or run the program with the Python that has it."
                ) from None
            missing.append(f"jax._src.{name}")
    for (module, name), arguments in _WRAPPED.items():
        if module in modules:
            missing.extend(_lacking(modules[module], name, arguments))
    for module, wanted in _READ.items():
        if module in modules:
            missing.extend(
                f"jax._src.{module}.{name}" for name in wanted if not hasattr(modules[module], name)
            )
    if missing:
        raise LedgerError(
            f"The ledger does not know jax {version()}: it lacks {', '.join(missing)}. The ledger "
            "was written for jax 0.10.2 to 0.12.0.1; use one of those, or a newer jax-harness."
        )
    return Internals(modules)


def _lacking(module: Any, name: str, arguments: tuple[str, ...]) -> list[str]:
    if _has_no_lock(module, name):
        return []
    label = f"{module.__name__}.{name}"
    try:
        function = _point(module, name).function
    except AttributeError:
        return [label]
    parameters = inspect.signature(function).parameters
    return [f"{label}({argument}=)" for argument in arguments if argument not in parameters]


def _point(module: Any, name: str) -> Point:
    of, _, last = name.rpartition(".")
    holder = operator.attrgetter(of)(module) if of else module
    return Point(holder, last, getattr(holder, last))


def _has_no_lock(module: Any, name: str) -> bool:
    return name == _LOCK[1] and getattr(module, "filelock", module) is None


def module_name(computation: Any) -> str:
    """Return the name of a StableHLO module, as it stands in the entry's file name."""
    return str(computation.operation.attributes["sym_name"].value)


def module_text(computation: Any, locations: bool, largest_constant: int | None) -> str:
    """Print a StableHLO module; constants of more elements than the limit are left out."""
    return str(
        computation.operation.get_asm(
            enable_debug_info=locations, large_elements_limit=largest_constant
        )
    )


def compile_option_fields(serialized: bytes) -> dict[str, str]:
    """Return the options that JAX serialised into the key as field name to printed value."""
    xla_client: Any = importlib.import_module("jax._src.lib").xla_client
    options = xla_client.CompileOptions.ParseFromString(serialized)
    fields = _attributes(options, "", skip={"executable_build_options"})
    build = options.executable_build_options
    fields |= _attributes(build, "executable_build_options.", skip={"debug_options"})
    # A text proto, whose first line is a changing marker and no field.
    for line in str(build.debug_options).splitlines():
        name, colon, value = line.strip().partition(": ")
        if colon and name.startswith("xla"):
            label = f"debug_options.{name}"
            fields[label] = f"{fields[label]}, {value}" if label in fields else value
    return fields


def _attributes(options: Any, prefix: str, skip: set[str]) -> dict[str, str]:
    fields = {}
    for name in dir(options):
        if name.startswith("_") or name in skip:
            continue
        try:
            value = getattr(options, name)
        # An option that this release refuses to read back (XLA raises its own types here) leaves
        # the rest readable.
        except Exception:
            continue
        if not callable(value) and not _by_address(value):
            fields[prefix + name] = repr(value)
    return fields


def _by_address(value: Any) -> bool:
    return " at 0x" in repr(value)
