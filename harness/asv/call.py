"""What this run's `asv` asks for, which it does not tell a `setup_cache`; and its end.

The plugin, which lives in asv's own process, writes it into an environment variable; asv's children
read it there. What only they need is imported there: asv of plain benchmarks does not pay for it.
Processes that asv starts end with it: killed, it leaves them to measure on.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.stages import sampling
    from harness.workload.workload import Case, Workload

VARIABLE = "HARNESS_ASV_CALL"

SETUP = "harness_setup_cache"
"""A parameter of asv's forkserver: it is to run the `setup_cache` of a benchmark."""


@dataclass(frozen=True)
class AsvCall:
    """What asv asks of its children."""

    pid: int = 0
    """asv's own process; 0 where there is none."""
    folder: str = ""
    """The folder of its configuration, in which asv works."""
    config: str = ""
    quick: bool = False
    dry_run: bool = False
    machine: str = ""
    commit: str = ""
    """What the user wants results to be filed under."""
    bench: tuple[str, ...] = ()
    interleave: bool = False
    """Each round is to be measured at another time than the one before."""
    processes: int = 0
    """How many rounds, which are processes, the user asks for; 0 leaves it to the effort."""
    process: int | None = None
    """Which of the processes this round is, from 0; None where one round takes all."""
    profile: str = ""
    """`run` where benchmarks are profiled besides, `profile` where that is all."""
    since_ms: int = 0
    """Nothing that was measured before may answer."""
    answered_ms: Mapping[str, int] = field(default_factory=dict)
    """By workload, the same: when asv last stored a result of what it now asks for again."""

    @classmethod
    def current(cls) -> AsvCall:
        """Return what asv asks of this process; nothing in particular where no asv started it."""
        call = json.loads(os.environ.get(VARIABLE, "{}"))
        return cls(**{**call, "bench": tuple(call.get("bench", ()))})

    @property
    def effort(self) -> sampling.Effort:
        """How often each case is measured: as asked for here, else by HARNESS_EFFORT, else asv."""
        from harness.stages import sampling  # not for plain benchmarks

        named = os.environ.get("HARNESS_EFFORT") or ("quick" if self.quick else "default")
        asked = sampling.effort(named)
        return sampling.effort(f"{self.processes}x{asked.passes}") if self.processes else asked

    @property
    def rounds(self) -> int:
        """Return how many rounds asv is to run: 1 where one takes all processes."""
        return self.effort.processes if self.interleave else 1

    def announce(self) -> None:
        """Let the processes that are started from now on know."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    def selects(self, workload: type[Workload], case: Case) -> bool:
        """Tell whether `--bench` matches any reader of a case, as asv itself matches it."""
        from harness.asv.metrics import (  # not for plain benchmarks
            FACT_METRICS,
            case_metrics,
            process_metrics,
        )
        from harness.workload.workload import name_of  # not for plain benchmarks

        name = name_of(workload)
        params = ", ".join(map(repr, case.coordinates.values()))
        readers = [f"{name}.track_{metric}({params})" for metric in case_metrics(workload)]
        readers += [f"{name}.track_facts({fact!r}, {params})" for fact in FACT_METRICS]
        readers += [f"{name}.track_{metric}" for metric in process_metrics(workload)]
        return not self.bench or any(
            re.search(pattern, reader) for pattern in self.bench for reader in readers
        )


def end_with(pid: int) -> None:
    """End this process when another is gone."""
    import psutil  # not for plain benchmarks

    def watch() -> None:
        try:
            select.select([os.pidfd_open(pid)], [], [])
        except (AttributeError, OSError):  # it is gone, or this is no Linux
            with contextlib.suppress(psutil.Error):
                psutil.Process(pid).wait()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def end_server() -> None:
    """Have Linux end asv's forkserver, if this is it, with asv; and what it forks with itself.

    A thread that watches, as above, must not be there when it forks.
    """
    if sys.platform == "linux" and sys.argv[1:2] == ["run_server"]:
        from harness.measure.containment import end_with_parent  # in asv's forkserver alone

        if os.getppid() == 1 != AsvCall.current().pid:  # asv was gone before
            os._exit(1)
        end_with_parent(os.getppid())
        os.register_at_fork(after_in_child=functools.partial(end_with_parent, os.getpid()))
