"""Builds of a piece of a program, and lines of a log; light, for processes of their own as well."""

import harness
from harness.jaxhooks import events
from harness.jaxhooks.writer import Writer
from harness.profiles.recorded import read_folder


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


def of_a_library(text, **names):
    """Return a value whose repr, a library's, returns an expression; the user's is not called."""
    source = f"class Value:\n    def __repr__(self):\n        return {text}"
    exec(compile(source, "/x/site-packages/library.py", "exec"), names)
    return names["Value"]()


STARTED = events.Started(
    events.SCHEMA, 7, 1, "host", "context", ("p.py",), "/", "3.13", 1.0, 5, 4, 2, 1
)


def function(number, name="f"):
    return events.Function(number, name, name, "p.py", number, "program")


def opened(folder):
    writer = Writer(folder)
    writer.open()
    writer.write(STARTED)
    return writer


def written(folder, *lines):
    """Return the closed writer of a log with these lines behind the first."""
    writer = opened(folder)
    for line in lines:
        writer.write(line)
    writer.close()
    return writer


def only(folder):
    (found,) = read_folder(folder)
    return found
