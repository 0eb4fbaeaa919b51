"""XLA's own events of every compile, in files beside a profile's logs: `harness profile --inside`.

A file is called `PID-BEGIN-COST.xplane.pb`: the process, when the compile began, by the logs'
clock, and what it took to record it, in nanoseconds. With :data:`TEXTS` the text of what was made
stands beside it, in `PID-BEGIN-COST.hlo`; to write it is not in the cost.
"""

from __future__ import annotations

import glob
import os
import shutil
import threading
import time
from collections.abc import Callable
from typing import Any

from harness.errors import ProfileError
from harness.watch import jax_names
from harness.watch.replacements import Replacements

VARIABLE = "HARNESS_PROFILE_INSIDE"
"""The folder of the files; without it, nothing of this is done."""

TEXTS = "HARNESS_PROFILE_TEXTS"
"""Whether what is compiled is written as well, for the lines of kernels."""

SUFFIX = ".xplane.pb"
TEXT_SUFFIX = ".hlo"

clock = time.perf_counter_ns


class CompileTraces(Replacements):
    """Records compiles, one at a time: what another thread compiles meanwhile is in that one's."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        super().__init__(failed)
        self.folder = os.environ.get(VARIABLE, "")
        self._lock = threading.Lock()

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
                        self.guarded(self._end, place, begin, middle, made)
            finally:
                self._lock.release()

        self.replace(point, compile)
        self.active = True

    def _begin(self) -> str:
        """Start JAX's profiler, and return where it writes; it fails where the program uses it."""
        place = os.path.join(self.folder, f".{os.getpid()}-{clock()}")
        jax_names.trace_compiles(place)
        return place

    def _end(self, place: str, begin: int, middle: int, made: Any) -> None:
        end = clock()
        jax_names.public().profiler.stop_trace()
        [file] = glob.glob(os.path.join(place, "**", f"*{SUFFIX}"), recursive=True)
        cost = clock() - end + middle - begin
        name = os.path.join(self.folder, f"{os.getpid()}-{middle}-{cost}")
        if made is not None and os.environ.get(TEXTS):
            with open(name + TEXT_SUFFIX, "w", encoding="utf-8") as text:
                text.writelines(module.to_string() for module in made.hlo_modules())
        os.replace(file, name + SUFFIX)
        shutil.rmtree(place, ignore_errors=True)
