"""Several processes, one persistent cache: who compiles, who waits, who writes, what is wasted."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.cache.experiments import children, subjects
from harness.cache.experiments.children import Child, ChildError
from harness.cache.ledger import Event
from harness.declare import location
from harness.declare.workload import Case, Workload, name_of
from harness.errors import UsageError
from harness.records import environment
from harness.stages.scenarios import cache_state
from harness.watch.ledger import events

CHILD = "harness.cache.experiments.sharing_child"

START_IN_S = 0.05
"""From the moment when all are ready to the one when all start; they look every 2 ms."""

SHARE_TIMEOUT_MS = 10_000
"""How long a process of a distributed job waits for another's executable. JAX's default is 20
minutes, all of which it waits where the processes do not agree on the key (jax 0.10 to 0.12)."""


class Program(msgspec.Struct, frozen=True):
    """What one process did about one program."""

    case: str
    asked_s: float
    """When it asked for the executable, in seconds after the common start."""
    took_s: float
    """How long until it had it, without what the ledger took."""
    key: str = ""
    loaded: bool = False
    """Whether it came from the cache."""
    compile_s: float | None = None
    """Seconds inside XLA's compiler; None where it was not called."""
    write: str = ""
    """`wrote`, `already there` (another was faster), `not stored`, or nothing: it did not try."""
    lock_wait_s: float = 0.0

    @property
    def outcome(self) -> str:
        """`compiled`, `loaded` from the cache, or `received` from the process that compiled."""
        if self.compile_s is not None:
            return "compiled"
        return "loaded" if self.loaded else "received"

    @property
    def waited_s(self) -> float:
        """Seconds in which it did nothing: for the lock, or for another process's executable."""
        return self.lock_wait_s + (self.took_s if self.outcome == "received" else 0.0)


def program(case: str, asked_s: float, took_s: float, event: Event) -> Program:
    """Return what a process did about one program, from the ledger's event of it."""
    return Program(
        case,
        asked_s,
        took_s - event.own_s,
        event.key,
        event.outcome == "hit",
        event.compile_s,
        _write(event),
        event.lock_wait_s,
    )


def _write(event: Event) -> str:
    if event.outcome == "written":
        return "wrote"
    if event.reason in (events.ALREADY_THERE, events.UNREADABLE_IN_PLACE):
        return "already there"
    return "" if event.write_s is None else "not stored"


class Process(msgspec.Struct, frozen=True):
    """What one process did, and the events that JAX reported in it."""

    programs: list[Program]
    events: dict[str, int]

    @property
    def problem(self) -> str:
        """How the events contradict what was noted; empty where they prove it."""
        noted = {
            "requests": len(self.programs),
            "hits": sum(program.outcome == "loaded" for program in self.programs),
        }
        seen = {kind: self.events.get(kind, 0) for kind in noted}
        return "" if seen == noted else f"events show {seen}, noted was {noted}"


class Round(msgspec.Struct, frozen=True):
    """All processes of one arrangement, started at the same moment on one directory."""

    arrangement: str
    scenario: str
    """`cold`: the directory was empty; `warm`: the cold round had filled it."""
    entries_before: int
    entries_after: int
    processes: list[Process]
    reason: str = ""
    """Why the round could not be held."""


class Report(msgspec.Struct, frozen=True):
    """Every arrangement, cold and warm."""

    workload: str
    cases: list[str]
    versions: dict[str, str]
    rounds: list[Round]


@dataclass(frozen=True)
class Arrangement:
    """How several processes share a directory."""

    name: str
    processes: int
    distributed: bool = False
    flags: tuple[tuple[str, str], ...] = ()


def arrangements(processes: int) -> tuple[Arrangement, ...]:
    """Return what is tried: processes that know nothing of each other, and one job of two."""
    together = (("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo"),)
    share = (
        *together,
        ("JAX_SHARE_BINARY_BETWEEN_HOSTS", "1"),
        ("JAX_SHARE_BINARY_BETWEEN_HOSTS_TIMEOUT_MS", str(SHARE_TIMEOUT_MS)),
    )
    return (
        Arrangement(f"{processes} independent", processes),
        Arrangement("2 distributed", 2, True, together),
        Arrangement("2 distributed, share_binary", 2, True, share),
    )


def share(
    workload: type[Workload],
    cases: Sequence[Case],
    processes: int = 4,
    max_size_bytes: int | None = None,
    announce: Callable[[str], None] = lambda text: None,
) -> Report:
    """Let several processes build the same cases at the same moment with one cache directory.

    The directory is a new one for each arrangement. In a distributed job every program spans the
    devices of both processes (replicated inputs), as a training step does. CPU only.

    Args:
        workload: whose programs are built.
        cases: which of them, one after the other in each process.
        processes: how many that know nothing of each other; the distributed job has two.
        max_size_bytes: `jax_compilation_cache_max_size`; with it JAX locks the directory.
        announce: told what is about to run.

    Raises:
        UsageError: fewer than two processes.
        ChildError: an independent process did not end well.
    """
    if processes < 2:
        raise UsageError(f"processes is {processes}; sharing needs at least 2.")
    rounds: list[Round] = []
    for arrangement in arrangements(processes):
        with tempfile.TemporaryDirectory(prefix="harness-share-") as name:
            folder = Path(name)
            for scenario in ("cold", "warm"):
                announce(f"{arrangement.name}: {scenario}")
                rounds.append(
                    _round(workload, cases, arrangement, scenario, folder, max_size_bytes)
                )
                if rounds[-1].reason:
                    break
    labels = [case.label for case in cases]
    return Report(name_of(workload), labels, environment.versions(), rounds)


def _round(
    workload: type[Workload],
    cases: Sequence[Case],
    arrangement: Arrangement,
    scenario: str,
    folder: Path,
    max_size_bytes: int | None,
) -> Round:
    directory = folder / "cache"
    meeting = folder / f"meeting-{scenario}"
    meeting.mkdir()
    flags = dict(arrangement.flags)
    if max_size_bytes is not None:
        flags["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(max_size_bytes)
    variables = children.environment(workload, cases[0], directory, **flags)
    coordinator = f"127.0.0.1:{free_port()}" if arrangement.distributed else ""
    job = {
        "source": msgspec.to_builtins(location.locate(workload)),
        "cases": [subjects.position_of(workload, case) for case in cases],
        "processes": arrangement.processes,
        "coordinator": coordinator,
        "meeting": str(meeting),
    }
    jobs = [(CHILD, {**job, "number": n}, variables) for n in range(arrangement.processes)]
    before = len(cache_state.entries(directory))
    timeout_s = workload.timeout_s * len(cases)

    def start(running: Sequence[Child]) -> None:
        _start_together(running, meeting, timeout_s)

    try:
        answers = children.ask_together(jobs, folder, timeout_s, start)
    except ChildError as error:
        if not arrangement.distributed:
            raise
        # A machine may forbid the network that a distributed job needs; the rest still counts.
        return Round(
            arrangement.name,
            scenario,
            before,
            len(cache_state.entries(directory)),
            [],
            reason_of(error),
        )
    found = [msgspec.convert(answer, Process) for answer in answers]
    return Round(arrangement.name, scenario, before, len(cache_state.entries(directory)), found)


def reason_of(error: ChildError) -> str:
    """Return why a distributed round could not be held, and what to do where that is known."""
    text = str(error)
    if "GetKeyValue() timed out" not in text:
        return text
    return (
        f"a process waited {SHARE_TIMEOUT_MS / 1e3:g} s for an executable that the other never "
        "handed out: on CPU the two never agree on the key of one program, since each has its own "
        "number in the part `accelerator_config`. With JAX's own setting it would have waited "
        "20 minutes; leave jax_share_binary_between_hosts off here."
    )


def _start_together(running: Sequence[Child], meeting: Path, timeout_s: float) -> None:
    """Wait until all are ready, then name the moment at which all start."""
    deadline = time.monotonic() + timeout_s
    while len(list(meeting.glob("ready-*"))) < len(running):
        ended = any(child.process.poll() is not None for child in running)
        if ended or time.monotonic() > deadline:
            return  # whoever waits for the answers says who, and its last words
        time.sleep(START_IN_S / 10)
    named = meeting / "named"
    named.write_text(str(time.monotonic_ns() + int(START_IN_S * 1e9)))
    os.replace(named, meeting / "go")  # all of it or nothing is seen


def free_port() -> int:
    """Return a port of this machine that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
