"""Logs that were never recorded: awkward ones, written and read by the real code. Times in ms."""

from __future__ import annotations

from harness.jaxhooks import events
from harness.jaxhooks.events import RUN, Run
from harness.jaxhooks.writer import Writer, encoded
from harness.output.report.profile.face import load_profile
from harness.profiles.causes.cause import Cause

MAIN = 1
FUNCTION = events.Function(1, "loss", "loss", "/project/train.py", 10, "program")
JNP = events.Function(2, "broadcast_in_dim", "f", "/x/site-packages/jax/lax.py", 5, "jax")
STACK = events.Stack(1, (events.Frame("/project/train.py", 88, "main", "program"),))
ABOUT = (FUNCTION, JNP, STACK)


def ns(milliseconds):
    return round(milliseconds * 1e6)


def started(clock=100.0, process=0.0, pid=7, how="command", cwd="/project"):
    times = 1.8e9, ns(clock), ns(process)
    return events.Started(
        events.SCHEMA, pid, 1, "here", how, ("train.py",), cwd, "3.11.0", *times, 2, MAIN
    )


def build(number, begin, end, *spans, thread=MAIN, function=1, requests=(), times=1, **other):
    """`spans` are (stage, begin, end)."""
    pieces = tuple(events.Span(stage, ns(a), ns(b), times) for stage, a, b in spans)
    whole = ns(begin), ns(end), pieces
    return events.Build(number, function, 1, 1, 1, thread, *whole, requests=requests, **other)


def request(outcome, request=0.0, compile=0.0, load=0.0, write=0.0, key="k", reason=""):
    times = [ns(value) for value in (request, compile, load, write)]
    return events.Request("jit_loss", times[0], outcome, key, reason, *times[1:])


def samples(at, interval=25.0, **counts):
    """`counts` are by whose code was innermost, of the main thread."""
    rows = tuple((MAIN, 1, whose, count) for whose, count in counts.items())
    return events.Samples(ns(interval), ns(at), rows)


def ended(at, why="exit", **other):
    return events.Ended(ns(at), why, **other)


def profile_of(folder, *logs, run=None):
    """`logs` are lists of lines, the first of each a `started`; `run` is (begin, end, pid)."""
    for lines in logs:
        writer = Writer(folder)
        writer.open()
        for line in (lines[0], *ABOUT, *lines[1:]):
            writer.write(line)
        writer.close()
    if run is not None:
        about = Run(("python", "train.py"), ns(run[0]), ns(run[1]), 0, run[2])
        (folder / RUN).write_bytes(encoded(about))
    return load_profile(folder)


def caused(profile, kind="static value", **fields):
    """Give every build but the first of each function a cause, as `decide` would."""
    seen = set()
    for built in profile.builds:
        name = built.function.name
        cause = Cause(kind, **fields) if name in seen else Cause("first")
        profile.causes[built.key] = cause
        seen.add(name)
    return profile
