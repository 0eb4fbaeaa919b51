"""Record the builds of a piece of a program, and look at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import harness
from harness.profiles.model import Built
from harness.report.profile.face import Profile
from harness.watch.events import Line


def profiled(run: Callable[[], Any]) -> Profile:
    """Return the profile of a call, which must not have failed anywhere in itself."""
    with harness.profile() as found:
        run()
    ended = found.processes[0].ended
    assert ended is not None
    assert ended.failures == ()
    return found


def builds(run: Callable[[], Any]) -> list[Built]:
    """Return the builds of a call."""
    return list(profiled(run).builds)


def lines(found: Profile, kind: type[Line]) -> list[Any]:
    """Return the lines of a kind."""
    return list(found.processes[0].of(kind))


def times(built: Built) -> dict[str, int]:
    """Return how often each stage was really done."""
    return {span.stage: built.times(span.stage) for span in built.line.spans}


def named(found: list[Built], name: str) -> list[Built]:
    """Return the builds of the functions of a name."""
    return [built for built in found if built.function.name == name]
