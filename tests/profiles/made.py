"""Profiles out of nothing: real lines of a log, without a program that would write them."""

from __future__ import annotations

from dataclasses import replace

from harness.profiles.model import Process
from harness.report.profile.face import Profile
from harness.watch import events
from harness.watch.events import Run
from harness.watch.writer import encoded
from tests.profiles import logs

CWD = "/home/somebody/project"


class Made:
    """A profile of one process that is put together build by build."""

    def __init__(self, cwd=CWD, argv=("train.py",), host="box", cores=2, ended=True):
        first = logs.started(clock=0, pid=1, cwd=cwd)
        self.started = replace(first, argv=argv, host=host, cpu_count=cores)
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
        begin, at = self._now, range(self._now, self._now + ms * len(stages), ms)
        self._now += ms * len(stages)
        frame = events.Frame(f"{self.started.cwd}/train.py", called, "main", "program")
        function = self.function(name, **where)
        settings = self.settings(jit or {}, context or {})
        inside = tuple(
            events.Inner(self.function(one), logs.ns(begin), logs.ns(begin + 1)) for one in inner
        )
        asked = (events.Request(f"jit_{name}", logs.ns(ms), outcome),)
        build = logs.build(
            self._next,
            begin,
            self._now,
            *((stage, start, start + ms) for stage, start in zip(stages, at, strict=True)),
            function=function,
            requests=asked if "compile" in stages else (),
            settings=settings,
            inner=inside,
            program=program,
        )
        self.lines.append(events.Stack(self._next, (frame,)))
        self.lines.append(replace(build, object=function, wrapper=function, stack=self._next))
        if cause is not None:
            self.causes["made", self._next] = cause
        return self

    def _all(self):
        return (*self.lines, *([events.Ended(logs.ns(self._now), "exit")] if self.ended else []))

    def profile(self):
        profile = Profile((Process("made", self.started, self._all()),), run=self.run)
        if self.causes:
            profile.causes.clear()
            profile.causes.update(self.causes)
        return profile

    def write(self, folder):
        """Write it as the folder of a profile."""
        folder.mkdir(parents=True)
        (folder / "box-1-0.jsonl").write_bytes(b"".join(map(encoded, self._all())))
        return folder


def run_of(*command):
    return Run(command, 0, logs.ns(2_000), 0, 1)
