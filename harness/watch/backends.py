"""Time how long JAX takes to make its backends, once: the first computation of a process waits."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from typing import Any

from harness.watch.events import Backend, Line

clock = time.perf_counter_ns


class Backends:
    """Replaces JAX's `backends` until it has made some (0.10.2, 0.11.2 and 0.12.0.1 alike)."""

    def __init__(self, write: Callable[[Line], None], fail: Callable[[Exception], None]) -> None:
        self.write, self.fail = write, fail
        self._bridge: Any = None
        self._real: Any = None
        self._replacement: Any = None

    def start(self) -> None:
        """Wait for JAX's backends, where there are none yet."""
        try:
            self._bridge = importlib.import_module("jax._src.xla_bridge")
            if self._bridge.backends_are_initialized():
                return
            self._real = self._bridge.backends
        except (ImportError, AttributeError) as error:
            self.fail(error)
            return

        def backends(*args: Any, **kwargs: Any) -> Any:
            begin = clock()
            found = self._real(*args, **kwargs)
            first = self._replacement is not None
            self.stop()
            try:
                if first:
                    self._made(begin, clock(), found)
            # The program has its backends, whatever is not known of them.
            except Exception as error:
                self.fail(error)
            return found

        self._replacement = self._bridge.backends = backends

    def stop(self) -> None:
        """Put JAX's function back, unless somebody else has replaced it."""
        if self._replacement is not None and self._bridge.backends is self._replacement:
            self._bridge.backends = self._real
        self._replacement = None

    def _made(self, begin: int, end: int, found: dict[str, Any]) -> None:
        client = getattr(self._bridge, "_default_backend", None) or next(iter(found.values()))
        devices = tuple(str(device) for device in client.devices())
        self.write(Backend(begin, end, threading.get_ident(), client.platform, devices))
