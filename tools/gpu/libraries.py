"""XLA and CuPy as the checks use them: the same few verbs, so that a check is written once."""

import functools
import importlib
import re

from harness import targets
from harness.baselines.counting import tally
from harness.baselines.cupy_fused import Fused, fell_back
from harness.baselines.cupy_graph import CupyGraph
from harness.baselines.side import Unavailable
from harness.program.facts import facts_of
from harness.workload.workload import PRECISIONS, Case, Workload
from tools.gpu.programs import slope

_VERBOSE = 1
"""cudaGraphDebugDotFlagsVerbose."""


class Library:
    """What both have."""

    def time(self, call):
        """Return seconds per call."""
        return slope(call, self.wait)


class Xla(Library):
    """JAX on the GPU of this machine."""

    precisions = {**PRECISIONS, "default": None}

    def __init__(self):
        lacking = targets.find("gpu").lacking()
        if lacking:
            raise Unavailable(lacking)
        import jax

        if jax.devices()[0].platform != "gpu":
            raise Unavailable(f"JAX chose the device {jax.devices()[0]}, which is no GPU")
        self.jax = jax

    def made(self, arrays):
        """Return standard normal arrays on the device, of the given shapes and dtypes."""
        keys = self.jax.random.split(self.jax.random.key(20200229), len(arrays))
        return tuple(
            self.jax.random.normal(key, shape, "float32").astype(dtype)
            for key, (shape, dtype) in zip(keys, arrays, strict=True)
        )

    def call(self, function, arguments, precision=None):
        """Return what calls a program on these arguments: compiled ahead of time."""
        with self.jax.default_matmul_precision(self.precisions.get(precision, precision)):
            jitted = self.jax.jit(functools.partial(function, self.jax.numpy))
            self.lowered = jitted.lower(*arguments)
        self.compiled = self.lowered.compile()
        return functools.partial(self.compiled, *arguments)

    def wait(self, result):
        """Return when `result` is there."""
        self.jax.block_until_ready(result)

    def counted(self, function, arguments):
        """Return the kernels that the program names, of the one that was compiled last."""
        launches = facts_of(None, self.lowered, self.compiled).launches
        return {"program_launches": launches}

    def device(self):
        """Return what JAX says of the device."""
        return {"name": self.jax.devices()[0].device_kind}


class Cupy(Library):
    """CuPy's eager side and its CUDA graphs; JAX, where it is imported, keeps to the CPU."""

    precisions = PRECISIONS

    def __init__(self):
        self.side = CupyGraph("gpu")

    def made(self, arrays):
        """Return standard normal arrays on the device, of the given shapes and dtypes."""
        importlib.import_module("ml_dtypes")  # makes "bfloat16" a name
        normal = self.side.cupy.random.standard_normal
        return tuple(normal(shape, dtype="float32").astype(dtype) for shape, dtype in arrays)

    def call(self, function, arguments, precision=""):
        """Return what calls the eager program on these arguments."""
        eager = self.side.plain(_workload(function), Case())
        if precision:
            eager = self.side._in_precision(eager, Case(precision=precision))
        return functools.partial(eager, *arguments)

    def wait(self, result):
        """Return when the device is done."""
        self.side.wait(result)

    def counted(self, function, arguments):
        """Return the array operations of a program, and the kernels of its CUDA graph."""
        counts = {"operations": tally(function, self.side.fetch(arguments)).operations}
        try:
            self.side.build(_workload(function), Case(), arguments)(*arguments)
            dot = self.side.last.graph.debug_dot_str(_VERBOSE)
            counts["graph_kernels"] = count_kernel_nodes(dot)
        except Unavailable as error:
            counts["graph_kernels"] = str(error)
        return counts

    def fused(self, function, arguments):
        """Return the program fused by `cupy.fuse` as a call, and what tells how it was fused."""
        plain = self.side.plain(_workload(function), Case())
        fused = Fused(self.side.cupy.fuse, plain, arguments, self.side.tree)
        return functools.partial(fused, *arguments), lambda: fell_back(fused)

    def device(self):
        """Return what the driver says of the device."""
        runtime = self.side.cupy.cuda.runtime
        properties = runtime.getDeviceProperties(int(runtime.getDevice()))
        name = properties["name"]
        return {
            "name": name.decode() if isinstance(name, bytes) else str(name),
            "l2_bytes": properties["l2CacheSize"],
            "memory_bytes": properties["totalGlobalMem"],
            "multiprocessors": properties["multiProcessorCount"],
            "versions": self.side.versions(),
        }


def _workload(function):
    hooks = {"baseline": staticmethod(function), "function": staticmethod(function)}
    return type(function.__name__, (Workload,), {**hooks, "inputs": lambda self: ()})


def count_kernel_nodes(dot):
    """Return how many kernel nodes the DOT text of a CUDA graph has.

    With the flag Verbose a node's label begins with its kind; without, kernels are octagons.
    """
    kinds = re.findall(r'label="\{\s*([A-Z][A-Z_ ]*)', dot)
    if kinds:
        return sum(kind.strip() == "KERNEL" for kind in kinds)
    return dot.count('shape="octagon"')
