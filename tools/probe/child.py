"""One process of the probe: run a program's functions once and report what the cache did.

Started as ``python -P child.py '{"file": FILE, "program": NAME, ...}'`` by any interpreter that has
JAX; the last line of its output is a JSON object. Only the standard library and JAX are imported.
"""

import json
import logging
import os
import pathlib
import signal
import sys
import time
import warnings

PREFIX = "/jax/compilation_cache/"
WAIT_S = 30.0


def wait_for_go(fault):
    """Say that this process is at the agreed place, and go on when the other side says so."""
    pathlib.Path(fault["ready"]).touch()
    give_up = time.monotonic() + WAIT_S
    while not os.path.exists(fault["go"]) and time.monotonic() < give_up:
        time.sleep(0.002)


def plant(fault):
    """Make the write of the first entry stop: before, in the middle, or before its `-atime`."""
    kind = type(pathlib.Path("."))
    try:
        # With `etils` installed JAX writes through a path class of that package.
        from jax._src import lru_cache

        kind = type(vars(lru_cache)["pathlib"].Path("."))
    except (ImportError, KeyError):
        pass
    write = kind.write_bytes
    armed = [True]

    def stop():
        armed[0] = False
        if fault["then"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for_go(fault)

    def write_bytes(path, data):
        place, name = fault["at"], os.fspath(path)
        wanted = "-atime" if place == "atime" else "-cache"
        if not armed[0] or not name.endswith(wanted):
            return write(path, data)
        if place != "half":
            stop()
            return write(path, data)
        with open(name, "wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            stop()
            file.write(data[len(data) // 2 :])
        return len(data)

    kind.write_bytes = write_bytes


def functions_of(order):
    """The functions of a program, each with its argument and the result it must have."""
    source = pathlib.Path(order["file"]).read_text(encoding="utf-8")
    namespace = {"__name__": "subject", "__file__": order["file"]}
    exec(compile(source, order["file"], "exec"), namespace)
    return namespace[order["program"]](*order.get("names", ()))


def main(order):
    """Run what was ordered."""
    for module in order.get("hide", ()):
        sys.modules[module] = None  # its import fails from here on
    import jax
    import numpy as np

    events = []
    jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
    messages, handler = [], logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())
    logging.getLogger("jax").addHandler(handler)
    if order.get("fault"):
        plant(order["fault"])
    correct, seconds = True, 0.0
    jax.devices()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for function, argument, expected in functions_of(order):
            start = time.perf_counter()
            result = np.asarray(jax.block_until_ready(function(argument)))
            seconds += time.perf_counter() - start
            correct = correct and bool(np.allclose(result, expected, rtol=1e-4, atol=1e-4))
    return {
        "requests": events.count(PREFIX + "compile_requests_use_cache"),
        "hits": events.count(PREFIX + "cache_hits"),
        "correct": correct,
        "call_s": seconds,
        "warnings": [str(one.message) for one in caught] + messages,
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
