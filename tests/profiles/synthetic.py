"""Profiles made up line by line: hostile names, threads, nested and unfinished builds."""

from __future__ import annotations

from dataclasses import replace

from harness.jaxhooks import events
from harness.jaxhooks.events import Run
from harness.jaxhooks.writer import encoded
from harness.output.report.profile.face import Profile
from harness.profiles.model import Process
from tests.profiles import logs

HOSTILE = ("<script>alert(1)</script>", 'x" onmouseover="alert(2)', "دالة_الخسارة", "<!-- & -->")
MS = 1_000_000
MAIN = 140_000_000_000_001
OTHER = MAIN + 4096
CWD = "/home/user/project"
FILE = f"{CWD}/train.py"


def started(pid, at_ns):
    first = logs.started(at_ns / MS, at_ns / MS - 20, pid, cwd=CWD)
    argv = ("train.py", "--steps")
    return replace(first, argv=argv, host="host", at_s=1_000.0 + at_ns / 1e9, main_thread=MAIN)


def build(number, begin_ns, thread, function, outcome):
    """Return a build of 10 ms: 1 trace, 2 lower, 6 compile or load."""
    at = begin_ns / MS
    compiled, loaded = (0, 5) if outcome == "hit" else (5, 0)
    asked = logs.request(outcome, 6, compiled, loaded, key=f"key{number}")
    spans = ("trace", at, at + 1), ("lower", at + 1, at + 3), ("compile", at + 3, at + 9)
    made = logs.build(
        number,
        at,
        at + 10,
        *spans,
        thread=thread,
        function=function,
        requests=(replace(asked, module="jit_f", directory="/cache"),),
        arguments=1 + number % 3,
        settings=1,
        program=events.Program(1000, 64, 64, 128),
    )
    return replace(made, object=number, wrapper=number, stack=1 + number % 2)


def lines(builds, at_ns, hostile=True):
    """Return what a process writes down: builds on two threads, 12 ms after each other."""
    names = HOSTILE if hostile else ("loss", "predict", "step", "update")
    frame = events.Frame(FILE, 88, "main", "program")
    library = events.Frame("/x/site-packages/lib/run.py", 5, "run", "library")
    found: list[events.AnyLine] = [
        events.Import(at_ns, at_ns + 5 * MS, MAIN, {"jax": "0.12.0.1", "jaxlib": "0.12.0.1"}),
        events.Backend(at_ns + 6 * MS, at_ns + 8 * MS, MAIN, "cpu", ("TFRT_CPU_0",)),
        events.Settings(1, {}, {}),
        *(events.Function(n, one, one, FILE, 10 * n, "program") for n, one in enumerate(names, 1)),
    ]
    for number, function in enumerate(("fit", names[0]), 1):
        inner = events.Frame(FILE, 20 + number, function, "program")
        found.append(events.Stack(number, (frame, library, inner)))
    for number in range(1, 4):
        leaf = events.Leaf("x", f"float32[{number}]", kind="jax.Array")
        static = events.Static("steps", "int", str(number))
        found.append(events.Arguments(number, (leaf,), (static,)))
    begin = at_ns + 10 * MS
    for number in range(1, builds + 1):
        outcome = ("written", "hit", "unwritten")[number % 3]
        thread = MAIN if number % 4 else OTHER
        found.append(build(number, begin, thread, 1 + number % 4, outcome))
        begin += 12 * MS
    # A build inside the trace of another, and one whose noted end is behind the outer one's.
    outer = build(builds + 1, begin, MAIN, 1, "written")
    return [
        *found,
        build(builds + 2, begin + 4 * MS, MAIN, 2, "written"),
        replace(outer, inner=(events.Inner(2, begin, begin + MS // 2),)),
        events.Cleared("jax.clear_caches", 0, 1, begin + 20 * MS),
        events.Running(3, "compile", 1, OTHER, begin + 21 * MS, begin + 40 * MS),
    ]


def profile(builds=12, processes=2, hostile=True):
    """Return a profile of several processes, of which the last was cut off."""
    made = []
    for number in range(processes):
        at_ns = 1_000 * MS * (number + 1)
        first = started(4_711 + number, at_ns)
        written = lines(builds, at_ns, hostile)
        if number < processes - 1:
            end = max(line.end_ns for line in written if isinstance(line, events.Build))
            written[-1] = events.Ended(end + 30 * MS, "exit", 2 * MS)
        made.append(Process(f"host-{4_711 + number}-0.jsonl", first, (first, *written)))
    end = max(process.end_ns for process in made)
    run = Run(("python", "train.py", HOSTILE[0]), 950 * MS, end + MS, 0, 4_711)
    return Profile(tuple(made), None, run)


def write(profile, folder):
    """Write a profile as its processes would have."""
    folder.mkdir(parents=True, exist_ok=True)
    for process in profile.processes:
        (folder / process.file).write_bytes(b"".join(map(encoded, process.lines)) + b"\n")
    (folder / "run.json").write_bytes(encoded(profile.run))
    return folder
