"""One compile as a trace that Perfetto and chrome://tracing open: XLA's own events, by thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.profiles.tracks import Slice, nested
from harness.program.compiler import tree
from harness.program.compiler.tree import CompileEvent


def trace(events: Sequence[CompileEvent], label: str) -> dict[str, Any]:
    """Return what a file in Google's Trace Event Format holds of a compile, as XLA told it.

    An event is of the category that its group is. Times are microseconds since it began.
    """
    root = tree.build(events)
    threads: dict[str, list[Slice]] = {}
    for node in root.all() if root else ():
        event = node.event
        details = {"group": node.group, "part": node.part, "module": event.module}
        details |= {"operations": str(event.operations or "")}
        details = {name: text for name, text in details.items() if text}
        threads.setdefault(event.thread, []).append(
            Slice(event.begin_ns, event.end_ns, event.name, node.group, details)
        )
    began = root.event.begin_ns if root else 0
    rows = [_named("process_name", 0, label)]
    for number, (thread, slices) in enumerate(threads.items()):
        rows.append(_named("thread_name", number, thread))
        for begin_ns, end_ns, name, kind, details in nested(slices):
            one = {"ph": "X", "name": name, "cat": kind, "pid": 0, "tid": number, "args": details}
            times = {"ts": (begin_ns - began) / 1000, "dur": (end_ns - begin_ns) / 1000}
            rows.append({**one, **times})
    return {"traceEvents": rows, "displayTimeUnit": "ms", "otherData": {"tool": "harness"}}


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 0, "tid": thread, "args": {"name": name}}
