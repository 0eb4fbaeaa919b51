"""Lines of a log as a program would have written them, made without one."""

from __future__ import annotations

from typing import Any

from harness.profiles.model import Process
from harness.report.profile.face import Profile
from harness.watch import events

STEP_NS = 1_000_000


def started():
    """Return a first line."""
    return events.Started(1, 1, 0, "host", "context", (), "", "3.12", 0.0, 0, 0, 2, 1)


class Program:
    """Builds one after the other, a millisecond each, of functions that are called by number."""

    def __init__(self):
        self.lines: list[Any] = [started()]
        self.now_ns = 0
        self._known: dict[Any, int] = {}

    def _number(self, kind, thing, make):
        number = self._known.get((kind, thing))
        if number is None:
            number = self._known[kind, thing] = len(self._known) + 1
            self.lines.append(make(number))
        return number

    def build(self, function, shape="4", stages="TLC", object_=1, **line):
        """Add a build, and return its number."""
        name = f"f{function}"
        number = self._number(
            "function",
            name,
            lambda n: events.Function(n, name, name, "train.py", function, "program"),
        )
        leaf = events.Leaf("x", f"float32[{shape}]")
        arguments = self._number(
            "arguments", shape, lambda n: events.Arguments(n, "x", (leaf,), ())
        )
        settings = self._number("settings", 0, lambda n: events.Settings(n, {}, {}))
        self.now_ns += STEP_NS
        names = {"T": "trace", "L": "lower", "C": "compile"}
        spans = tuple(
            events.Span(names[letter], self.now_ns, self.now_ns + STEP_NS // 3, 1)  # type: ignore[arg-type]
            for letter in stages
        )
        given = {"thread": 1, "begin_ns": self.now_ns, "end_ns": self.now_ns + STEP_NS} | line
        self.lines.append(
            events.Build(
                len(self.lines),
                number,
                object_,
                1,
                0,
                spans=spans,
                arguments=arguments,
                settings=settings,
                **given,
            )
        )
        return self.lines[-1].id  # type: ignore[no-any-return]

    def clear(self, what="jax.clear_caches"):
        """Empty a cache."""
        self.now_ns += STEP_NS
        self.lines.append(events.Cleared(what, 0, 0, self.now_ns + STEP_NS // 2))

    def process(self, name="memory"):
        """Return it as a process."""
        return Process(name, started(), tuple(self.lines))

    def profile(self):
        """Return it as a profile."""
        return Profile((self.process(),))
