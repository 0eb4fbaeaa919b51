"""Every private name of JAX that this house stands on, and what differs between its releases.

Written for jax 0.10.2, 0.11.2 and 0.12.0.1. Python functions are replaced as attributes of their
modules or classes, because that is how all three releases call them; nothing of JAX's own C++ is
touched. A call on the fast path, in C++, passes none of them, and costs what it always costs.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

    from harness.errors import HarnessError

RELEASES = "0.10.2 to 0.12.0.1"

EAGER_SHARD_MAP = ("HashablePartial.__call__", "jax/_src/util.py")
"""What JAX gives to jit, anew each time, for a shard_map outside jit and each operation in it:
the qualified name and the end of the file (jax 0.10 to 0.12)."""


@dataclass(frozen=True)
class Name:
    """A function of JAX that is replaced while somebody listens."""

    module: str
    """Below `jax._src`."""
    attribute: str
    arguments: tuple[str, ...] = ()
    """Those that are looked at, by name."""
    needs: str = ""
    """An attribute of the module without which JAX does not use the function."""


BUILDS = {
    "make": Name("pjit", "_cpp_pjit"),
    "infer_params": Name("pjit", "_infer_params"),
    "run": Name("pjit", "_run_python_pjit"),
    "call_jaxpr": Name("pjit", "_pjit_call_impl_python"),
    "lower": Name("pjit", "_resolve_and_lower"),
    "compile": Name("interpreters.pxla", "MeshComputation.compile"),
    "traced": Name("interpreters.partial_eval", "test_event"),
    "lowered": Name("interpreters.mlir", "lower_jaxpr_to_module"),
    # A loop calls it for each value of its carry once its body is traced, traces the body again
    # where any was promoted, and then checks the carry.
    "promote": Name("lax.control_flow.loops", "_promote_weak_typed_input"),
    "check_carry": Name("lax.control_flow.loops", "_check_carry_type"),
    # What was compiled ahead of time asks for it at its first call.
    "first_call": Name("interpreters.pxla", "MeshExecutable.create_cpp_call"),
    "clear_all": Name("util", "clear_all_caches"),
    # `jax.jit` sets `clear_cache` of its C++ type to `jit_evict_fn` again at every call.
    "evict": Name("pjit", "jit_evict_fn"),
    "evict_method": Name("lib", "_jax.PjitFunction.clear_cache"),
}
"""What is replaced to see builds, by role."""

REQUESTS = {
    "compile_or_get_cached": Name("compiler", "compile_or_get_cached", ("backend", "computation")),
    "backend_compile": Name("compiler", "backend_compile_and_load"),
    # Up to 0.10 it has `host_callbacks`: programs with such were not written. Since 0.11.0 they are
    # cached like any other.
    "cache_write": Name("compiler", "_cache_write", ("cache_key", "compile_time_secs")),
    "is_cache_used": Name("compilation_cache", "is_cache_used", ("backend",)),
    "get_executable": Name("compilation_cache", "get_executable_and_time", ("cache_key",)),
    "put_executable": Name(
        "compilation_cache", "put_executable_and_time", ("cache_key", "backend")
    ),
    "compress": Name("compilation_cache", "compress_executable", ("executable",)),
    "decompress": Name("compilation_cache", "decompress_executable", ("executable",)),
    "make_key": Name("cache_key", "get", ("module", "devices")),
    "hashlib": Name("cache_key", "hashlib"),
    "hash_part": Name("cache_key", "_log_cache_key_hash", ("last_serialized",)),
    # The put calls it, with a size cap or without, once it holds the lock and has found no entry
    # in the place: it then writes. No event of JAX says so.
    "evict_entries": Name("lru_cache", "LRUCache._evict_if_needed", ("self",)),
    # The lock of a directory with a size cap.
    "lock_directory": Name("lru_cache", "filelock.BaseFileLock.acquire", needs="filelock"),
}
"""What is replaced to see requests to the persistent cache, by role."""

REBUILDS = {
    "open": Name("compilation_cache", "get_file_cache"),
    "write": Name("compiler", "_cache_write", ("cache_key", "compile_time_secs")),
}
"""What is replaced to have a program's entries written elsewhere, by role."""

READ = {
    "compilation_cache": ("_get_cache",),
    "distributed": ("global_state",),
    "monitoring": ("register_event_duration_secs_listener", "unregister_event_duration_listener"),
    "config": (
        "compilation_cache_dir",
        "compilation_cache_include_metadata_in_key",
        "compilation_cache_max_size",
        "enable_compilation_cache",
        "persistent_cache_min_compile_time_secs",
        "persistent_cache_min_entry_size_bytes",
    ),
}
"""What is read, of the modules that requests go through; looked for together with `REQUESTS`."""

CACHE_CONFIG = (
    *READ["config"],
    "compilation_cache_check_contents",
    "persistent_cache_enable_xla_caches",
)
"""The cache's settings, each with a variable of its own in the environment."""

DURATIONS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
"""JAX's own events that have a duration, and the stage that each is of."""

CACHE_EVENTS = {
    "/jax/compilation_cache/cache_hits": "hit",
    "/jax/compilation_cache/compile_requests_use_cache": "request",
    # JAX's "misses" are writes: a compile below the thresholds is not counted (jax 0.8 to 0.12).
    "/jax/compilation_cache/cache_misses": "write",
}
"""JAX's own events of the persistent cache."""

SAVED_EVENT = "/jax/compilation_cache/compile_time_saved_sec"

TRACED = "trace_to_jaxpr"
"""What JAX notes whenever it really traces, nested or not."""

PMAP_FILE = "jax/_src/pmap.py"

LOOPS = "jax/_src/lax/control_flow/loops.py"
"""The file of JAX's loops (jax 0.10 to 0.12)."""

ASSOCIATIVE = ("associative_scan", LOOPS)
"""The function that writes out an associative scan, and the end of its file."""

ASSOCIATIVE_LEVEL = "associative_scan.<locals>._scan"
"""What JAX runs once a level of an associative scan (jax 0.10 to 0.12)."""

KERNEL_CALLS = ("pallas_call", "mpmd_map", "core_map", "triton_kernel_call", "tpu_call")
"""Primitives that call a kernel in Pallas, Triton or Mosaic; `jax_triton`'s among them."""

NAMELESS = "anonymous"
"""What Pallas calls a kernel without a name (jax 0.10 to 0.12)."""

SOLVERS = ("/jax/_src/scipy/", "/jax/experimental/", "/jax/scipy/")
"""Folders of JAX whose functions are given functions, and trace them as a library does."""

KERNELS = ("/jax/_src/pallas/", "/jax/experimental/pallas/", "/jax/experimental/mosaic/")
"""Folders of JAX whose rules of lowering compile kernels, or run passes over them."""

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

CACHE_SETTINGS = (
    *OTHER_SETTINGS,
    "jax_default_prng_impl",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_enable_xla_caches",
    "jax_compilation_cache_check_contents",
)
"""Those, and settings that say what random numbers are of and what the cache does."""

FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")


@dataclass(frozen=True)
class Point:
    """A function of JAX, and the module or class that has it as an attribute."""

    holder: Any
    name: str
    function: Callable[..., Any]


@functools.cache
def version(package: str = "jax") -> str:
    """Return the version of a package: its own word, where it is imported; else the installed one.

    A tree of a build system, or a copy, has no metadata. Looking it up takes half a millisecond.
    """
    own = getattr(sys.modules.get(package), "__version__", "")
    return str(own) or importlib.metadata.version(package)


def public() -> Any:
    """Return JAX, which is imported only now.

    Whoever reads a recording never imports JAX; a user pays for `jax.export` where it is used.
    """
    return importlib.import_module("jax")


def module(name: str) -> Any:
    """Return one of JAX's private modules by its name below `jax._src`."""
    return importlib.import_module(f"jax._src.{name}")


def points(names: Mapping[str, Name], who: str, error: type[HarnessError]) -> dict[str, Point]:
    """Return what is to be replaced, by role, as it stands in the running JAX.

    Args:
        names: `BUILDS` or `REQUESTS`.
        who: who asks, as a message names it.
        error: what to raise if the running JAX lacks a name or an argument.
    """
    by_role: dict[str, Point] = {}
    missing: list[str] = []
    for role, name in names.items():
        label = f"jax._src.{name.module}.{name.attribute}"
        try:
            holder = module(name.module)
            if name.needs and getattr(holder, name.needs, None) is None:
                continue
            of, _, last = name.attribute.rpartition(".")
            holder = operator.attrgetter(of)(holder) if of else holder
            point = Point(holder, last, getattr(holder, last))
        except ModuleNotFoundError as problem:
            if problem.name == "jax":
                raise error(
                    f"The {who} watches JAX, and JAX is not installed in this Python. "
                    "Install jax, or run the program with the Python that has it."
                ) from None
            missing.append(f"jax._src.{name.module}")
        except AttributeError:
            missing.append(label)
        else:
            by_role[role] = point
            parameters = inspect.signature(point.function).parameters if name.arguments else ()
            missing += [f"{label}({one}=)" for one in name.arguments if one not in parameters]
    if names is REQUESTS:
        missing += [
            f"jax._src.{name}.{attribute}"
            for name, wanted in READ.items()
            for attribute in wanted
            if not hasattr(module(name), attribute)
        ]
    if missing:
        raise error(
            f"The {who} does not know jax {version()}: it lacks "
            f"{', '.join(dict.fromkeys(missing))}. The {who} was written for jax {RELEASES}; use "
            "one of those, or a newer jax-harness."
        )
    return by_role


# --- JAX's own events -----------------------------------------------------------------------------


def listen(on_duration: Callable[..., None], on_event: Callable[..., None] | None = None) -> None:
    """Have JAX tell functions every duration, and every event without one, that it records."""
    monitoring = module("monitoring")
    monitoring.register_event_duration_secs_listener(on_duration)
    if on_event is not None:
        monitoring.register_event_listener(on_event)


def unlisten(on_duration: Callable[..., None], on_event: Callable[..., None] | None = None) -> None:
    """Take the functions off again, if nobody has taken all of them off."""
    monitoring = module("monitoring")
    # They fail where monitoring.clear_event_listeners() was called in the meantime.
    with contextlib.suppress(AssertionError, ValueError):
        monitoring.unregister_event_duration_listener(on_duration)
    if on_event is not None:
        with contextlib.suppress(AssertionError, ValueError):
            monitoring.unregister_event_listener(on_event)


def trace_compiles(folder: Path | str) -> None:
    """Have JAX's profiler write XLA's own events into a folder, and none of Python's, until ended.

    It raises where another profiler is at work.
    """
    profiler = public().profiler
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 3
    options.enable_hlo_proto = False
    profiler.start_trace(folder, profiler_options=options)


# --- where JAX is, and what is set ----------------------------------------------------------------


def tracing() -> bool:
    """Return whether this thread is inside a function that JAX is tracing."""
    return not module("core").trace_state_clean()


def setting(name: str) -> Any:
    """Return the value of one of JAX's settings as this thread sees it."""
    return getattr(module("config"), name).value


def jit_disabled(frame: FrameType | None) -> bool:
    """Return whether an operation runs by itself as jit is disabled.

    JAX takes that back for the operation, and has what it was in a variable of `apply_primitive`.
    """
    while frame is not None and frame.f_code.co_name != "apply_primitive":
        frame = frame.f_back
    before = frame.f_locals.get("prev") if frame is not None else None
    return before is True or bool(module("config").disable_jit.get_global())


def persistent_cache(backend: Any) -> Any:
    """Return JAX's cache object, None where there is none."""
    return module("compilation_cache")._get_cache(backend)


def cache_in_use() -> Any:
    """Return the cache object that JAX made at its first use, and goes on with; None before."""
    return getattr(module("compilation_cache"), "_cache", None)


def can_serialise(backend: Any) -> bool:
    """Whether JAX stores executables of a back end."""
    platforms = ("tpu", "gpu", "cpu", "neuron")
    able = getattr(backend, "supports_executable_serialization", True)
    return getattr(backend, "platform", "") in platforms and bool(able)


def checks_contents(cache: Any) -> bool:
    """Whether a cache skips the first look-up of each key, to compare what it then compiles."""
    return hasattr(cache, "_base_cache")


def cap_in_use(cache: Any) -> int:
    """Return the size cap that a cache was made with, in bytes; -1 for none."""
    return int(getattr(getattr(cache, "_base_cache", cache), "max_size", -1))


def process_id() -> int:
    """Return this process's number in a distributed run, 0 elsewhere."""
    return int(module("distributed").global_state.process_id)


def hide(file: str) -> None:
    """Have JAX take a file for its own: no line of it becomes the source of an operation.

    Without it, operations of a program would seem to come from the profile, which changes the
    locations in what JAX lowers.
    """
    info = module("source_info_util")
    if file not in info._exclude_paths:
        info.register_exclusion(file)
    # Out of the tracebacks that a user sees, too; this one JAX cannot undo.
    tracebacks = module("traceback_util")
    if file not in tracebacks._exclude_paths:
        tracebacks.register_exclusion(file)


def show(file: str) -> None:
    """Undo :func:`hide`, as far as JAX can."""
    info = module("source_info_util")
    if file in info._exclude_paths:
        info._exclude_paths.remove(file)
        info._exclude_path_regex.cache_clear()


# --- the rest: each a thing that JAX has and says nothing public of -------------------------------


def bridge() -> Any:
    """Return the module that makes JAX's backends: `backends`, `backends_are_initialized`."""
    return module("xla_bridge")


def array_type() -> type:
    """Return the class of JAX's concrete arrays, of which `jax.Array` is only a description."""
    kind: type = module("array").ArrayImpl
    return kind


def flattener(kind: type) -> Any:
    """Return the function by which JAX takes an object of a registered class apart; or None."""
    return getattr(getattr(module("tree_util"), "_registry", {}).get(kind), "to_iter", None)


def static_arguments(function: Any) -> tuple[Sequence[int], Sequence[str]]:
    """Return positions and names of static arguments of what `jax.jit` made; none for all else."""
    info = getattr(function, "_jit_info", None)
    return ((), ()) if info is None else (info.static_argnums, info.static_argnames)


def options_of(traced: Any) -> Mapping[str, Any]:
    """Return what a `jax.stages.Traced` was jitted with.

    Of it are read, each with one value per argument that is not static, `in_shardings` and
    `donated_invars`, and `compiler_options_kvs`.
    """
    return traced._params  # type: ignore[no-any-return]


def compile_options(serialized: bytes) -> Any:
    """Return XLA's compile options, as JAX serialises them into a key."""
    return module("lib").xla_client.CompileOptions.ParseFromString(serialized)


def topology(devices: Any) -> bytes:
    """Return what XLA makes its fingerprint of devices of; empty where a platform cannot say."""
    client = module("lib").xla_client
    try:
        return bytes(client.get_topology_for_devices(list(devices.flat)).serialize())
    except (AttributeError, RuntimeError):
        return b""


def cost_analysis(hlo_module: Any) -> Any:
    """Return XLA's analysis of an HLO module, which any client answers alike; None without one."""
    try:
        client = public().devices("cpu")[0].client
        return module("lib")._jax.hlo_module_cost_analysis(client, hlo_module)
    except (ImportError, AttributeError, RuntimeError):
        return None


@contextlib.contextmanager
def compiling_through(way: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Have every module that JAX gives to XLA meanwhile go through a function.

    `way` gets the one of JAX, which takes the client, the module and more, and returns the other.
    """
    holder, name = module("compiler"), REQUESTS["backend_compile"].attribute
    real = getattr(holder, name)
    setattr(holder, name, way(real))
    try:
        yield
    finally:
        setattr(holder, name, real)


def inline_cpu_client() -> Any:
    """Return a new client of the CPU that computes a call before the call returns."""
    return module("lib").xla_client.make_cpu_client(asynchronous=False)


def serialised(executable: Any) -> bytes:
    """Return an executable as bytes; raises where XLA has no such of it."""
    return bytes(executable.serialize())


def load_into(client: Any, stored: bytes) -> Any:
    """Return a serialised executable of one device as a client has it that did not compile it."""
    (device,) = client.local_devices()
    devices = module("lib").xla_client.DeviceList((device,))
    return client.deserialize_executable(stored, devices)


def parameters(compiled: Any, leaves: Sequence[Any]) -> list[Any]:
    """Return what XLA's program of a `jax.stages.Compiled` takes, of the leaves of a call.

    Constants may come before them, and what the program does not use is left out.
    """
    kept = compiled._executable.unsafe_call.kept_var_idx
    every = (*compiled._params.const_args, *leaves)
    return [one for number, one in enumerate(every) if number in kept]


def has_effects(compiled: Any) -> bool:
    """Return whether a `jax.stages.Compiled` calls Python back, or has its calls in an order."""
    call = compiled._executable.unsafe_call
    return bool(call.has_host_callbacks or call.has_unordered_effects or call.ordered_effects)


def cupti() -> Any:
    """Return the extension that speaks to CUPTI; raises ImportError or AttributeError without."""
    return module("lib.mosaic_gpu")._mosaic_gpu_ext


def file_cache() -> Any:
    """Return the module of the persistent cache's directory: `LRUCache`, `pathlib`, `filelock`."""
    return module("lru_cache")


COMPILE_SCRIPT = '''"""Compile one module and print the seconds: {label}.

Written with {versions}.
"""

import os

os.environ.update({environment})

import time
from pathlib import Path

import jax
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.experimental.topologies import get_topology_desc

HERE = Path(__file__)
TARGET = "{target}"
device = {device}
with mlir.make_ir_context(), ir.Location.unknown():
    module = ir.Module.parse(HERE.with_name("module.mlir").read_text())
options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
devices = xla_client.DeviceList((device,))
begin = time.perf_counter()
compiler.backend_compile_and_load(device.client, module, devices, options, [])
seconds = time.perf_counter() - begin
print(f"{{seconds:.3f}} s to compile for {{TARGET}} with jax {{jax.__version__}}")
'''
"""A program that compiles the module beside it, with JAX alone."""


def hlo_module(given: str | bytes) -> Any:
    """Return the module that an HLO text or a serialised `HloModuleProto` is of."""
    module_of = importlib.import_module("jaxlib._hlo").HloModule
    if isinstance(given, bytes):
        return module_of.from_serialized_hlo_module_proto(given)
    return importlib.import_module("jaxlib._hlo").hlo_module_from_text(given)


def mlir_module(given: Any) -> Any:
    """Return StableHLO's text or bytecode, or an HLO module, parsed; `jax.export`'s as well."""
    mlir, ir = module("interpreters.mlir"), module("lib.mlir").ir
    of_jaxlib = importlib.import_module("jaxlib._jax").mlir
    if not isinstance(given, str | bytes):
        hlo = importlib.import_module("jaxlib._hlo")
        computation = hlo.XlaComputation(given.as_serialized_hlo_module_proto())
        given = of_jaxlib.xla_computation_to_mlir_module(computation)
    with mlir.make_ir_context(), ir.Location.unknown():
        parsed = ir.Module.parse(given)
        if " vhlo.func_v1 " in str(parsed):  # the form that lasts over releases
            parsed = of_jaxlib.deserialize_portable_artifact(given)
        if "sym_name" not in parsed.operation.attributes:  # JAX asks for a name
            parsed.operation.attributes["sym_name"] = ir.StringAttr.get("module")
    return parsed


def compile_module(parsed: Any, device: Any) -> Callable[[], Any]:
    """Return what compiles an MLIR module for one device, as JAX does."""
    compiler = module("compiler")
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    devices = module("lib").xla_client.DeviceList((device,))
    return functools.partial(
        compiler.backend_compile_and_load, device.client, parsed, devices, options, []
    )
