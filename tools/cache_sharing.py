"""Several processes, one cache directory: who compiles, who writes, what is done twice.

`python -m tools.cache_sharing --write docs/cache.md` runs every arrangement on the CPU and
writes the table of that page; the tests run smaller ones.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests import forks
from tests.cache.filled import environment

ROOT = Path(__file__).resolve().parents[1]
SIZES = (8, 16)
GLOO = {"JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
TIMEOUT_S = 180.0
COLUMNS = ("requests", "keys", "loaded", "compiled", "wrote", "write lost", "wasted", "repeated")


class NoJob(Exception):
    """This machine does not let two processes form a distributed job."""


@dataclass(frozen=True)
class Arrangement:
    """How several processes share a directory."""

    name: str
    processes: int
    distributed: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    alone: bool = False
    """Whether one process, outside of any job, fills the directory first."""


def share_binary(timeout_s):
    """Return the settings under which process 1 waits for what process 0 has compiled."""
    return {
        "JAX_SHARE_BINARY_BETWEEN_HOSTS": "1",
        "JAX_SHARE_BINARY_BETWEEN_HOSTS_TIMEOUT_MS": str(round(timeout_s * 1e3)),
    }


ARRANGEMENTS = (
    Arrangement("4 independent", 4),
    Arrangement("1 fills, then 4 independent", 4, alone=True),
    Arrangement("2 distributed", 2, distributed=True),
    Arrangement("1 fills, then 2 distributed", 2, distributed=True, alone=True),
    Arrangement("2 distributed, share_binary", 2, distributed=True, settings=share_binary(10)),
)


def child(number, processes, coordinator):
    """Get ready, start with the others, build two programs, print the ledger's events."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from harness.cache.ledger import ledger

    if coordinator:
        jax.distributed.initialize(coordinator, processes, number)
    # Every program spans the devices of all processes, as a training step does.
    everywhere = NamedSharding(Mesh(jax.devices(), ("devices",)), PartitionSpec())
    with ledger() as book:
        print("ready", flush=True)
        sys.stdin.readline()
        for size in SIZES:

            def step(x):
                return jax.numpy.tanh(x @ x) + 1

            step.__name__ = f"step_{size}"
            argument = jax.ShapeDtypeStruct((size, size), "float32", sharding=everywhere)
            jax.jit(step).lower(argument).compile()
    print(msgspec.json.encode(book.events).decode())
    if coordinator:
        jax.distributed.shutdown()


def share(arrangement, folder):
    """Run an arrangement once on `folder`/cache; return the ledger's events of each process.

    Raises:
        NoJob: the processes of a distributed job do not find each other.
        RuntimeError: a process ended badly; with its last words.
    """
    coordinator = f"127.0.0.1:{free_port()}" if arrangement.distributed else ""
    started = [
        forks.Python(
            [sys.executable, "-m", "tools.cache_sharing", "--child", json.dumps(words)],
            env=environment(folder / "cache", **GLOO, **arrangement.settings),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            **forks.SAID,
        )
        for words in ((n, arrangement.processes, coordinator) for n in range(arrangement.processes))
    ]
    try:
        ready = [process.stdout.readline() for process in started]  # nothing of one that has ended
        for process in started:
            with contextlib.suppress(BrokenPipeError):
                print(file=process.stdin, flush=True)
        said = [process.communicate(timeout=TIMEOUT_S) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    if not all(ready) and arrangement.distributed:
        raise NoJob(said[0][1][-300:])
    if any(process.returncode for process in started):
        raise RuntimeError("\n".join(err[-2000:] for _, err in said))
    from harness.jaxhooks.events import Request

    return [msgspec.json.decode(out.splitlines()[-1], type=list[Request]) for out, _ in said]


def free_port():
    """Return a port of this machine that nobody listens on just now."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


def sums(processes):
    """Return the table's columns, added up over processes.

    A process compiles no program twice: `wasted` is compilations minus distinct keys, `repeated`
    compilations minus distinct programs. Where processes do not agree on the key of one program,
    only the second one shows it.
    """
    from harness.jaxhooks import events as reasons

    events = [event for process in processes for event in process]
    compiled = [event for event in events if event.compile_ns]
    lost = (reasons.ALREADY_THERE, reasons.UNREADABLE_IN_PLACE)
    return {
        "requests": len(events),
        "keys": len({event.key for event in events}),
        "loaded": sum(event.outcome == "hit" for event in events),
        "compiled": len(compiled),
        "wrote": sum(event.outcome == "written" for event in events),
        "write lost": sum(event.reason in lost for event in events),
        "wasted": len(compiled) - len({event.key for event in compiled}),
        "repeated": len(compiled) - len({event.module for event in compiled}),
    }


def table():
    """Run every arrangement, cold and warm, and return the table as Markdown."""
    lines = [("arrangement", "scenario", *COLUMNS), ("---",) * (len(COLUMNS) + 2)]
    for arrangement in ARRANGEMENTS:
        with tempfile.TemporaryDirectory(prefix="harness-share-") as name:
            for scenario in ("cold", "warm"):
                filling = scenario == "cold" and arrangement.alone
                try:
                    who = Arrangement("1", 1) if filling else arrangement
                    counts = sums(share(who, Path(name)))
                except (NoJob, RuntimeError) as error:
                    end = "timed out" if "GetKeyValue() timed out" in str(error) else "failed"
                    lines.append((arrangement.name, scenario, end, *[""] * (len(COLUMNS) - 1)))
                    break
                lines.append((arrangement.name, scenario, *(counts[name] for name in COLUMNS)))
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def main(name, about, table, child):
    """Run a child, or print a page's table and put it between the two marks that have its name."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page with the table")
    asked = parser.parse_args()
    if asked.child:
        child(*json.loads(asked.child))
        return
    written = table()
    if asked.write:
        marks = f"(?<=<!-- {name}: begin -->\n).*(?=<!-- {name}: end -->\n)"
        page = asked.write.read_text(encoding="utf-8")
        page = re.sub(marks, lambda _: written, page, flags=re.DOTALL)
        asked.write.write_text(page, encoding="utf-8")
    print(written, end="")


if __name__ == "__main__":
    main("table", __doc__, table, child)
