"""XLA's own events of every compile, in files beside a profile's logs: `harness profile --inside`.

A file is called `PID-BEGIN-COST.xplane.pb`: the process, when the compile began, by the logs'
clock, and what it took to record it, in nanoseconds. With :data:`READER` the text of what was made
stands beside it, in `PID-BEGIN-COST.hlo`, its StableHLO in `PID-BEGIN-COST.mlir`, and what the
reader makes of its jaxpr in `PID-BEGIN-COST.made`; to write them is not in the cost.
"""

from __future__ import annotations

import glob
import importlib
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from harness.errors import ProfileError
from harness.jaxhooks import jax_names
from harness.jaxhooks.replacements import Replacements

VARIABLE = "HARNESS_PROFILE_INSIDE"
"""The folder of the files; without it, nothing of this is done."""

READER = "HARNESS_PROFILE_READER"
"""A function, `module:name`, that makes bytes of the jaxpr of each program that is compiled.

It runs in the program that is followed, whose environment may lack all that the harness depends on:
what it imports is of the standard library, or JAX."""

SUFFIX = ".xplane.pb"
TEXT_SUFFIX = ".hlo"
MADE_SUFFIX = ".made"
MODULE_SUFFIX = ".mlir"

MOST_LOWERED = 64
"""Programs that were lowered and may still be compiled, the last ones."""

clock = time.perf_counter_ns


class CompileTraces(Replacements):
    """Records compiles, one at a time: what another thread compiles meanwhile is in that one's."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        super().__init__(failed)
        self.folder = os.environ.get(VARIABLE, "")
        self._lock = threading.Lock()
        self._lowered: deque[tuple[Any, Any]] = deque(maxlen=MOST_LOWERED)
        """Modules, and the jaxprs that they are of."""

    def install(self) -> None:
        """Put the replacement in place, where it is asked for."""
        if not self.folder:
            return
        names = {"compile": jax_names.REQUESTS["backend_compile"]}
        point = jax_names.points(names, "profile", ProfileError)["compile"]
        real = point.function

        def compile(*args: Any, **kwargs: Any) -> Any:
            if not self.active or not self._lock.acquire(blocking=False):
                return real(*args, **kwargs)
            try:
                begin = clock()
                place = self.guarded(self._begin)
                middle = clock()
                made = None
                try:
                    made = real(*args, **kwargs)
                    return made
                finally:
                    if place is not None:
                        self.guarded(self._end, place, begin, middle, made, args[1])
            finally:
                self._lock.release()

        self.replace(point, compile)
        if os.environ.get(READER):
            self._keep_jaxprs()
        self.active = True

    def _keep_jaxprs(self) -> None:
        names = {"lowered": jax_names.BUILDS["lowered"]}
        point = jax_names.points(names, "profile", ProfileError)["lowered"]
        real = point.function

        def lower_jaxpr_to_module(name: Any, jaxpr: Any, *args: Any, **kwargs: Any) -> Any:
            result = real(name, jaxpr, *args, **kwargs)
            if self.active:
                self._lowered.append((result.module, jaxpr))
            return result

        self.replace(point, lower_jaxpr_to_module)

    def _begin(self) -> str:
        """Start JAX's profiler, and return where it writes; it fails where the program uses it."""
        place = os.path.join(self.folder, f".{os.getpid()}-{clock()}")
        jax_names.trace_compiles(place)
        return place

    def _end(self, place: str, begin: int, middle: int, made: Any, module: Any) -> None:
        end = clock()
        jax_names.public().profiler.stop_trace()
        [file] = glob.glob(os.path.join(place, "**", f"*{SUFFIX}"), recursive=True)
        cost = clock() - end + middle - begin
        name = os.path.join(self.folder, f"{os.getpid()}-{middle}-{cost}")
        if made is not None and os.environ.get(READER):
            self.guarded(self._read, name, made, module)
        os.replace(file, name + SUFFIX)
        shutil.rmtree(place, ignore_errors=True)

    def _read(self, name: str, made: Any, module: Any) -> None:
        with open(name + TEXT_SUFFIX, "w", encoding="utf-8") as text:
            text.writelines(one.to_string() for one in made.hlo_modules())
        with open(name + MODULE_SUFFIX, "w", encoding="utf-8") as text:
            text.write(str(module))
        jaxpr = next((of for lowered, of in self._lowered if lowered is module), None)
        if jaxpr is not None:
            package, _, function = os.environ[READER].partition(":")
            read = getattr(importlib.import_module(package), function)
            data = read(jaxpr)
            with open(name + MADE_SUFFIX, "wb") as file:
                file.write(data)
