"""Profiles out of nothing: real lines of a log, without a program that would write them."""

from __future__ import annotations

from pathlib import Path

from harness.profiles.model import Process
from harness.report.profile.face import Profile
from harness.watch import events
from harness.watch.events import Run
from harness.watch.writer import encoded

MS = 1_000_000

CWD = "/home/somebody/project"


class Made:
    """A profile of one process that is put together build by build."""

    def __init__(self, cwd=CWD, argv=("train.py",), host="box", cores=2, ended=True):
        self.started = events.Started(
            schema=events.SCHEMA,
            pid=1,
            parent_pid=0,
            host=host,
            how="command",
            argv=argv,
            cwd=cwd,
            python="3.13.1",
            at_s=0.0,
            clock_ns=0,
            process_ns=0,
            cpu_count=cores,
            main_thread=1,
        )
        self.lines = [self.started]
        self.causes = {}
        self.ended = ended
        self.run = None
        self._now = 0
        self._next = 0
        self._functions = {}
        self._settings = {}

    def function(self, name, file="train.py", line=1, origin="program", qualname=None):
        file = file if not file or file.startswith(("/", "<")) else f"{self.started.cwd}/{file}"
        key = (name, qualname or name, file, line, origin)
        if key not in self._functions:
            number = self._functions[key] = len(self._functions) + 1
            self.lines.append(events.Function(number, *key))
        return self._functions[key]

    def settings(self, jit, context):
        key = (tuple(jit.items()), tuple(context.items()))
        if key not in self._settings:
            number = self._settings[key] = len(self._settings) + 1
            self.lines.append(events.Settings(number, jit, context))
        return self._settings[key]

    def build(
        self,
        name,
        *,
        cause=None,
        outcome="unwritten",
        stages=("trace", "lower", "compile"),
        ms=10,
        called=88,
        inner=(),
        jit=None,
        context=None,
        program=None,
        **where,
    ):
        """Add a build; each stage takes `ms` milliseconds, and a call at `train.py:CALLED`."""
        self._next += 1
        begin = self._now
        spans = []
        for stage in stages:
            spans.append(events.Span(stage, self._now, self._now + ms * MS, 1))
            self._now += ms * MS
        requests = ()
        if "compile" in stages:
            requests = (events.Request(f"jit_{name}", outcome, ms * MS),)
        frame = events.Frame(f"{self.started.cwd}/train.py", called, "main", "program")
        stack = events.Stack(self._next, (frame,))
        function = self.function(name, **where)
        inside = tuple(events.Inner(self.function(one), begin, begin + MS) for one in inner)
        number = self.settings(jit or {}, context or {})
        self.lines.append(stack)
        self.lines.append(
            events.Build(
                id=self._next,
                kind="call",
                function=function,
                object=function,
                wrapper=function,
                stack=stack.id,
                thread=1,
                begin_ns=begin,
                end_ns=self._now,
                spans=tuple(spans),
                settings=number,
                requests=requests,
                inner=inside,
                program=program,
            )
        )
        if cause is not None:
            self.causes["made", self._next] = cause
        return self

    def profile(self):
        lines = [*self.lines]
        if self.ended:
            lines.append(events.Ended(self._now, "exit"))
        process = Process("made", self.started, tuple(lines))
        profile = Profile((process,), run=self.run)
        if self.causes:
            profile.causes.clear()
            profile.causes.update(self.causes)
        return profile

    def write(self, folder: Path):
        """Write it as the folder of a profile."""
        folder.mkdir(parents=True)
        lines = [*self.lines, *([events.Ended(self._now, "exit")] if self.ended else [])]
        text = b"".join(encoded(line) for line in lines)
        (folder / "box-1-0.jsonl").write_bytes(text)
        return folder


def run_of(*command):
    return Run(command, 0, 2_000 * MS, 0, 1)
