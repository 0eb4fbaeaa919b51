"""One of the processes of `harness cache share`: it builds every case, and notes who did what."""

from __future__ import annotations

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
from harness.cache.experiments import sharing
from harness.cache.ledger import Ledger, LedgerError, ledger
from harness.workload import enumerate_cases

POLL_S = 0.002

_EVENTS = {
    "/jax/compilation_cache/compile_requests_use_cache": "requests",
    "/jax/compilation_cache/cache_hits": "hits",
    "/jax/compilation_cache/cache_misses": "misses",
}


class Counters:
    """Counts what JAX reports of its cache, for a check of what the ledger noted."""

    def __init__(self) -> None:
        self.counts = {"requests": 0, "hits": 0, "misses": 0}
        monitoring.register_event_listener(self._on_event)

    def _on_event(self, event: str, **_: Any) -> None:
        if event in _EVENTS:
            self.counts[_EVENTS[event]] += 1


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
    counters = Counters()
    with ledger() as book:
        begin_ns = _start_line(Path(job["meeting"]), number)
        programs = [
            _build(p, arguments, book, begin_ns)
            for p, arguments in zip(prepared, abstract, strict=True)
        ]
    answer = sharing.Process(programs, counters.counts)
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(answer))
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
    prepared: stages.Prepared, arguments: Any, book: Ledger, begin_ns: int
) -> sharing.Program:
    lowered = stages.wrap(prepared).trace(*arguments, **prepared.static).lower()
    before = len(book.events)
    asked_ns = time.monotonic_ns()
    lowered.compile()
    took_s = (time.monotonic_ns() - asked_ns) / 1e9
    noted = book.events[before:]
    if len(noted) != 1:
        raise LedgerError(
            f"The ledger noted {len(noted)} requests of one compile; its failures: {book.failures}."
        )
    asked_s = (asked_ns - begin_ns) / 1e9
    return sharing.program(prepared.case.label, asked_s, took_s, noted[0])


if __name__ == "__main__":
    main()
