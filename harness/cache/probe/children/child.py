"""One process of the probe: run a program's functions once and report what the cache did.

Started as ``python -P child.py '{"program": FILE, ...}'``; the last line of its output is a JSON
object. Only the standard library, JAX, and this package's names of JAX's are imported.
"""

import contextlib
import json
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
from harness.watch import jax_names

del sys.path[0]

WAIT_S = 30.0


def wait_for_go(fault: dict[str, str]) -> None:
    """Say that this process is at the agreed place, and go on when the other side says so."""
    Path(fault["ready"]).touch()
    give_up = time.monotonic() + WAIT_S
    while not os.path.exists(fault["go"]) and time.monotonic() < give_up:
        time.sleep(0.002)


def plant(fault: dict[str, str]) -> None:
    """Make the write of the first entry stop: before, in the middle, or before its `-atime`."""
    import pathlib

    kind: Any = type(pathlib.Path("."))
    with contextlib.suppress(ImportError, KeyError):
        # With `etils` installed JAX writes through a path class of that package.
        kind = type(vars(jax_names.file_cache())["pathlib"].Path("."))
    write = kind.write_bytes
    armed = [True]

    def stop() -> None:
        armed[0] = False
        if fault["then"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for_go(fault)

    def write_bytes(path: Any, data: bytes) -> int:
        place = fault["at"]
        name = os.fspath(path)
        if armed[0] and place == "atime" and name.endswith("-atime"):
            stop()
        if not armed[0] or not name.endswith("-cache") or place == "atime":
            return int(write(path, data))
        if place == "before":
            stop()
            return int(write(path, data))
        with open(name, "wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            stop()
            file.write(data[len(data) // 2 :])
        return len(data)

    kind.write_bytes = write_bytes


class Messages(logging.Handler):
    """Keeps what JAX logs as a warning."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one message."""
        self.texts.append(record.getMessage())


def calls_of(program: str, names: list[str]) -> list[tuple[Callable[[Any], Any], Any, Any]]:
    """The functions of a program file, each with its argument and the result it must have."""
    source = Path(program).read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "subject", "__file__": program}
    exec(compile(source, program, "exec"), namespace)
    calls = namespace["calls"]()
    return [calls[name] for name in names or calls]


def main(order: dict[str, Any]) -> dict[str, Any]:
    """Run what was ordered."""
    for module in order.get("hide", ()):
        sys.modules[module] = None  # type: ignore[assignment]  # its import fails from here on
    began = time.perf_counter()
    import jax
    import numpy as np

    counts = dict.fromkeys(jax_names.CACHE_EVENTS.values(), 0)

    def on_event(event: str, **_: Any) -> None:
        if event in jax_names.CACHE_EVENTS:
            counts[jax_names.CACHE_EVENTS[event]] += 1

    jax.monitoring.register_event_listener(on_event)
    messages = Messages()
    logging.getLogger("jax").addHandler(messages)
    fault = order.get("fault")
    if fault:
        plant(fault)
    correct, seconds = True, 0.0
    jax.devices()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for function, argument, expected in calls_of(order["program"], order.get("calls", [])):
            start = time.perf_counter()
            result = np.asarray(jax.block_until_ready(function(argument)))
            seconds += time.perf_counter() - start
            correct = correct and bool(np.allclose(result, expected, rtol=1e-4, atol=1e-4))
    return {
        "requests": counts["request"],
        "hits": counts["hit"],
        "writes": counts["write"],
        "correct": correct,
        "call_s": seconds,
        "process_s": time.perf_counter() - began,
        "warnings": [str(one.message) for one in caught] + messages.texts,
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "python": ".".join(map(str, sys.version_info[:3])),
        "modules": [name for name in ("filelock", "zstandard", "etils") if _there(name)],
    }


def _there(module: str) -> bool:
    from importlib.util import find_spec

    return sys.modules.get(module, ...) is not None and find_spec(module) is not None


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
