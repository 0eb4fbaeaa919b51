"""Lines of a log, its writer and its reader; light, for processes of their own as well."""

from __future__ import annotations

from harness.profiles.log_reader import read_folder
from harness.watch import events
from harness.watch.writer import Writer

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


def only(folder):
    (found,) = read_folder(folder)
    return found
