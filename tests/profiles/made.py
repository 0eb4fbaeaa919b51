"""Profiles out of nothing: real lines of a log, without a program that would write them."""

from __future__ import annotations

from dataclasses import replace

from harness.jaxhooks import events
from harness.jaxhooks.writer import encoded
from harness.output.report.profile.face import Profile
from harness.profiles.model import Process
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
        self.number = 0
        """Of the last build."""
        self._numbers = {}

    def _numbered(self, kind, *key):
        """Return the number of a line of what builds refer to, which is written once."""
        if (kind, str(key)) not in self._numbers:
            number = self._numbers[kind, str(key)] = len(self._numbers) + 1
            self.lines.append(kind(number, *key))
        return self._numbers[kind, str(key)]

    def function(self, name, file="train.py", line=1, origin="program", qualname=None):
        file = file if not file or file.startswith(("/", "<")) else f"{self.started.cwd}/{file}"
        return self._numbered(events.Function, name, qualname or name, file, line, origin)

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
        shape=None,
        object_=None,
        **where,
    ):
        """Add a build; each stage takes `ms` milliseconds, and a call at `train.py:CALLED`."""
        self.number += 1
        begin = self._now
        self._now += ms * len(stages)
        frame = events.Frame(f"{self.started.cwd}/train.py", called, "main", "program")
        function = self.function(name, **where)
        leaf = events.Leaf("x", f"float32[{shape}]")
        arguments = self._numbered(events.Arguments, (leaf,), ()) if shape else 0
        traced = (self.function(one) for one in inner)
        asked = (events.Request(f"jit_{name}", logs.ns(ms), outcome),)
        build = logs.build(
            self.number,
            begin,
            self._now,
            *((stage, begin + n * ms, begin + n * ms + ms) for n, stage in enumerate(stages)),
            function=function,
            requests=asked if "compile" in stages else (),
            inner=tuple(events.Inner(n, logs.ns(begin), logs.ns(begin + 1)) for n in traced),
            program=program,
            settings=self._numbered(events.Settings, jit or {}, context or {}),
            arguments=arguments,
        )
        self.lines.append(events.Stack(self.number, (frame,)))
        object_ = object_ or function
        self.lines.append(replace(build, object=object_, wrapper=function, stack=self.number))
        if cause is not None:
            self.causes["made", self.number] = cause
        return self

    def clear(self):
        """Empty JAX's caches."""
        self.lines.append(events.Cleared("jax.clear_caches", 0, 0, logs.ns(self._now)))
        self._now += 1

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
