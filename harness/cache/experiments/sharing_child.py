"""One of the processes of `harness cache share`: it builds every case, and notes who did what."""

from __future__ import annotations

import functools
import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import msgspec
from jax import monitoring
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from harness import stages, unit
from harness.workload import enumerate_cases

POLL_S = 0.002

_EVENTS = {
    "/jax/compilation_cache/compile_requests_use_cache": "requests",
    "/jax/compilation_cache/cache_hits": "hits",
    "/jax/compilation_cache/cache_misses": "misses",
}


class Traffic:
    """Notes what JAX asks of its persistent cache and of XLA, program by program.

    JAX's events name neither the key nor who wrote (`cache_misses` fires also where an entry is
    there already), so three functions of jax 0.10 to 0.12 are wrapped as well: the get and put of
    its cache, and the call of XLA's compiler. What they say is held against the events.
    """

    def __init__(self) -> None:
        from jax._src import compiler, lru_cache

        self.now: dict[str, Any] = {}
        self.events = {"requests": 0, "hits": 0, "misses": 0}
        monitoring.register_event_listener(self._on_event)
        cache: Any = lru_cache.LRUCache
        cache.get = self._wrapped_get(cache.get)
        cache.put = self._wrapped_put(cache.put)
        compiler.backend_compile_and_load = self._wrapped_compile(compiler.backend_compile_and_load)

    def take(self) -> dict[str, Any]:
        """Return what was noted since the last call."""
        noted, self.now = self.now, {}
        return noted

    def _on_event(self, event: str, **_: Any) -> None:
        if event in _EVENTS:
            self.events[_EVENTS[event]] += 1

    def _wrapped_get(self, get: Any) -> Any:
        @functools.wraps(get)
        def noting(cache: Any, key: str) -> Any:
            self._time_lock(cache)
            value = get(cache, key)
            self.now |= {"key": key, "loaded": value is not None}
            return value

        return noting

    def _wrapped_put(self, put: Any) -> Any:
        @functools.wraps(put)
        def noting(cache: Any, key: str, value: bytes) -> None:
            self._time_lock(cache)
            entry = Path(str(cache.path)) / f"{key}-cache"
            there = entry.exists()
            put(cache, key, value)
            self.now["write"] = "already there" if there else "wrote"
            if not entry.exists():
                self.now["write"] = "not stored"

        return noting

    def _wrapped_compile(self, compile_: Any) -> Any:
        @functools.wraps(compile_)
        def noting(*args: Any, **kwargs: Any) -> Any:
            begin = time.monotonic()
            executable = compile_(*args, **kwargs)
            self.now["compile_s"] = self.now.get("compile_s", 0.0) + time.monotonic() - begin
            return executable

        return noting

    def _time_lock(self, cache: Any) -> None:
        """Measure how long the lock of a bounded cache keeps this process waiting."""
        lock = getattr(cache, "lock", None)
        if lock is None or hasattr(lock, "waited"):
            return
        acquire = lock.acquire

        def noting(*args: Any, **kwargs: Any) -> Any:
            begin = time.monotonic()
            held = acquire(*args, **kwargs)
            self.now["lock_wait_s"] = self.now.get("lock_wait_s", 0.0) + time.monotonic() - begin
            return held

        lock.acquire = noting
        lock.waited = True


def main() -> None:
    """Get ready, wait for the others, build every case, and write what happened."""
    job = json.loads(Path(sys.argv[1]).read_bytes())
    number, together = job["number"], job["coordinator"]
    if together:
        jax.distributed.initialize(together, job["processes"], number)
    workload = unit.load(msgspec.convert(job["source"], unit.Source))
    known = list(enumerate_cases(workload))
    prepared = [stages.prepare(workload, known[position]) for position in job["cases"]]
    abstract = [_everywhere(p.abstract) if together else p.abstract for p in prepared]
    traffic = Traffic()
    begin_ns = _start_line(Path(job["meeting"]), number)
    programs = [
        _build(p, arguments, traffic, begin_ns)
        for p, arguments in zip(prepared, abstract, strict=True)
    ]
    Path(sys.argv[2]).write_text(json.dumps({"programs": programs, "events": traffic.events}))
    if together:
        jax.distributed.shutdown()


def _everywhere(arguments: Any) -> Any:
    """Return the arguments replicated on the devices of all processes: one program for them all."""
    everywhere = NamedSharding(Mesh(jax.devices(), ("devices",)), PartitionSpec())
    return jax.tree_util.tree_map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=everywhere), arguments
    )


def _start_line(meeting: Path, number: int) -> int:
    """Say that this process is ready, wait for the start, and return its time in nanoseconds."""
    jax.devices()
    (meeting / f"ready-{number}").touch()
    go = meeting / "go"
    while not go.exists():
        time.sleep(POLL_S)
    begin_ns = int(go.read_text())
    time.sleep(max(0.0, (begin_ns - time.monotonic_ns()) / 1e9))
    return begin_ns


def _build(
    prepared: stages.Prepared, arguments: Any, traffic: Traffic, begin_ns: int
) -> dict[str, Any]:
    lowered = stages.wrap(prepared).trace(*arguments, **prepared.static).lower()
    traffic.take()
    asked_ns = time.monotonic_ns()
    lowered.compile()
    done_ns = time.monotonic_ns()
    return {
        "case": prepared.case.label,
        "asked_s": (asked_ns - begin_ns) / 1e9,
        "took_s": (done_ns - asked_ns) / 1e9,
        **traffic.take(),
    }


if __name__ == "__main__":
    main()
