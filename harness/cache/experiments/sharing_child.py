"""One of the processes of `harness cache share`: it builds every case, and notes who did what."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import msgspec
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from harness.cache.experiments import sharing
from harness.cache.ledger import Ledger, LedgerError, ledger
from harness.declare import location
from harness.declare.workload import enumerate_cases
from harness.stages import preparing
from harness.watch import evidence

POLL_S = 0.002

_EVENTS = {"requests": "request", "hits": "hit", "misses": "write"}
"""What the report calls JAX's events, and what :mod:`harness.watch.evidence` does."""


def main() -> None:
    """Get ready, wait for the others, build every case, and write what happened."""
    job = json.loads(Path(sys.argv[1]).read_bytes())
    number, together = job["number"], job["coordinator"]
    if together:
        jax.distributed.initialize(together, job["processes"], number)
    workload = location.load(msgspec.convert(job["source"], location.Source))
    known = list(enumerate_cases(workload))
    prepared = [preparing.prepare(workload, known[position]) for position in job["cases"]]
    abstract = [_everywhere(p.abstract) if together else p.abstract for p in prepared]
    proof = evidence.Evidence()  # a check of what the ledger noted
    with ledger() as book:
        begin_ns = _start_line(Path(job["meeting"]), number)
        programs = [
            _build(p, arguments, book, begin_ns)
            for p, arguments in zip(prepared, abstract, strict=True)
        ]
    seen = proof.take()
    events = {name: seen.get(kind, 0) for name, kind in _EVENTS.items()}
    answer = sharing.Process(programs, events)
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
    prepared: preparing.Prepared, arguments: Any, book: Ledger, begin_ns: int
) -> sharing.Program:
    lowered = preparing.wrap(prepared).trace(*arguments, **prepared.static).lower()
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
