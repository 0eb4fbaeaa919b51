"""Time how long JAX takes to make its backends, once: the first computation of a process waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from harness.watch import jax_names
from harness.watch.events import Backend, Line
from harness.watch.source import EventSource

clock = time.perf_counter_ns


class Backends(EventSource[Any]):
    """Replaces JAX's `backends` until it has made some."""

    def __init__(self, write: Callable[[Line], None], fail: Callable[[Exception], None]) -> None:
        super().__init__()
        self.write, self.fail = write, fail

    def install(self) -> None:
        """Wait for JAX's backends, where there are none yet."""
        try:
            bridge = jax_names.bridge()
            if bridge.backends_are_initialized():
                return
            real = bridge.backends
        except (ImportError, AttributeError) as error:
            self.fail(error)
            return

        def backends(*args: Any, **kwargs: Any) -> Any:
            begin = clock()
            made = real(*args, **kwargs)
            first = self.active
            self.uninstall()
            try:
                if first:
                    self._made(begin, clock(), made, getattr(bridge, "_default_backend", None))
            # The program has its backends, whatever is not known of them.
            except Exception as error:
                self.fail(error)
            return made

        self.replace(jax_names.Point(bridge, "backends", real), backends)
        self.active = True

    def _made(self, begin: int, end: int, made: dict[str, Any], default: Any) -> None:
        client = default or next(iter(made.values()))
        devices = tuple(str(device) for device in client.devices())
        self.write(Backend(begin, end, threading.get_ident(), client.platform, devices))
