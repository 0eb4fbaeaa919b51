"""A profile of a program that compiles 100,000 times: its size, and how long it takes to read.

    python -m tools.performance.profile_scale [--builds 100000]

The log is written by the writer that programs use, with 1,000 functions, 2,000 call sites and as
many arguments as builds. Reading and everything that is made of the profile run in a process of
their own, whose memory is printed with the times.
"""

import functools
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import harness
from harness.jaxhooks import events
from harness.jaxhooks.writer import Writer
from harness.profiles.recorded import Recorded
from harness.profiles.slow import SlowBuilds
from tools.performance.command import options

_T = TypeVar("_T")

FUNCTIONS, STACKS = 1_000, 2_000
MS = 1_000_000
STAGES = ("trace", "lower", "compile")
PROGRAM = events.Program(9_000, 4_096, 4_096, 1_024)
SCRIPT = "/project/train.py"


def fill(folder: Path, builds: int) -> None:
    """Write a log: every function over and over, with new shapes."""
    writer = Writer(folder)
    writer.open()
    now = time.perf_counter_ns()
    where = ("host", "command", ("train.py",), "/project", "3.13.0")
    writer.write(events.Started(events.SCHEMA, os.getpid(), 1, *where, time.time(), now, now, 2, 1))
    for number in range(1, FUNCTIONS + 1):
        name = f"step_{number}"
        writer.write(events.Function(number, name, f"Model.{name}", SCRIPT, 10 * number, "program"))
    for number in range(1, STACKS + 1):
        calls = (("main", 5), ("fit", 700), ("epoch", 800), ("call", 900 + number))
        frames = tuple(events.Frame(SCRIPT, line, name, "program") for name, line in calls)
        writer.write(events.Stack(number, frames))
    writer.write(events.Settings(1, {}, {"jax_enable_x64": "False"}))
    for number in range(1, builds + 1):
        leaves = tuple(
            events.Leaf(f"params['w{leaf}']", f"float32[{number},{leaf}]", False, "jax.Array")
            for leaf in range(4)
        )
        statics = (events.Static("steps", "int", str(number)),)
        writer.write(events.Arguments(number, leaves, statics))
        begin = now + number * 20 * MS
        ends = [begin + after * MS for after in (0, 2, 5, 15)]
        key = f"jit_step-{hashlib.sha256(b'%d' % number).hexdigest()}"
        request = events.Request("jit_step", 10 * MS, "unwritten", key, "", 10 * MS)
        function, stack = number % FUNCTIONS + 1, number % STACKS + 1
        writer.write(
            events.Build(
                *(number, function, function, function, stack, 1, begin, ends[-1]),
                tuple(events.Span(s, *ends[at : at + 2], 1) for at, s in enumerate(STAGES)),
                arguments=number,
                settings=1,
                requests=(request,),
                program=PROGRAM,
                own_ns=50_000,
            )
        )
    writer.write(events.Ended(now + (builds + 1) * 20 * MS, "exit"))
    writer.close()
    assert writer.lost == 0


def show(folder: Path) -> None:
    """Read the profile and print what each thing made of it takes."""
    made: dict[str, Callable[[Recorded], object]] = {
        "builds": lambda profile: profile.builds,
        "causes": lambda profile: profile.causes,
        "summary": lambda profile: profile.summary(),
        "frame": lambda profile: profile.frame(),
        "report": lambda profile: profile.report(folder / "profile.html"),
    }
    profile = timed("read", lambda: harness.load_profile(folder))
    for name, make in made.items():
        timed(name, functools.partial(make, profile))


def timed(name: str, make: Callable[[], _T]) -> _T:
    """Return what was made; print the seconds, and the most memory so far."""
    begin, cpu = time.perf_counter(), time.process_time()
    made = make()
    took, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:8s} {took:6.2f} s, {cpu_s:6.2f} s of CPU, at most {most:.0f} MiB", flush=True)
    return made


def follow(folder: Path) -> None:
    """Print what looking for slow builds takes, all lines at once."""
    begin = time.perf_counter()
    SlowBuilds(folder, 5.0).look()
    print(f"slow     {time.perf_counter() - begin:6.2f} s")


def main() -> None:
    given = options(__doc__, builds=100_000, show="")
    if given.show:  # what the other process does
        show(Path(given.show))
        return
    with tempfile.TemporaryDirectory(prefix="harness-scale-") as name:
        begin = time.perf_counter()
        fill(Path(name), given.builds)
        took = time.perf_counter() - begin
        size = sum(file.stat().st_size for file in Path(name).iterdir())
        print(
            f"{given.builds} builds: {size / 2**20:.0f} MiB ({size / given.builds:.0f} bytes "
            f"each), written in {took:.1f} s ({took / given.builds * 1e6:.0f} µs each)"
        )
        follow(Path(name))
        subprocess.run([sys.executable, "-m", __spec__.name, "--show", name], check=True)


if __name__ == "__main__":
    main()
