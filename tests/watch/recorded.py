"""Record the builds of a piece of a program, and look at them."""

from __future__ import annotations

import harness


def profiled(run):
    """Return the profile of a call, which must not have failed anywhere in itself."""
    with harness.profile() as found:
        run()
    ended = found.processes[0].ended
    assert ended is not None
    assert ended.failures == ()
    return found


def builds(run):
    """Return the builds of a call."""
    return list(profiled(run).builds)


def lines(found, kind):
    """Return the lines of a kind."""
    return list(found.processes[0].of(kind))


def times(built):
    """Return how often each stage was really done."""
    return {span.stage: built.times(span.stage) for span in built.line.spans}


def named(found, name):
    """Return the builds of the functions of a name."""
    return [built for built in found if built.function.name == name]
