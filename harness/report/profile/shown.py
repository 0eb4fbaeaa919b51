"""What the page of a profile is about: the profile, and its tables with names for readers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pandas as pd

from harness.profiles import tracks
from harness.profiles.tables.frames import frame

if TYPE_CHECKING:
    from harness.profiles.model import Process
    from harness.profiles.recorded import Recorded


class Shown:
    """A profile that a page shows; each table is made once."""

    def __init__(self, profile: Recorded) -> None:
        self.profile = profile
        self.clock = tracks.Clock(profile)
        self.names = tracks.process_names(profile)
        """Of processes, by the name of the log."""
        self.threads = {one.file: tracks.thread_names(one) for one in profile.processes}

    def row(self, process: Process, thread: int) -> str:
        """Return the name of a thread, with that of its process."""
        return f"{self.names[process.file]} {self.threads[process.file][thread]}"

    def seconds(self, process: Process, at_ns: int) -> float:
        """Return a time of a process in seconds since the profile began."""
        return self.clock.at(process, at_ns) / 1e9

    @functools.cache  # noqa: B019 - lives as long as the page is made
    def frame(self, table: str) -> pd.DataFrame:
        """Return a table with processes and threads called as everywhere on the page."""
        made = frame(self.profile, table)
        if "process" not in made.columns:
            return made
        logs = {process.name: process.file for process in self.profile.processes}
        if table == "threads":
            told = zip(made["process"].map(logs), made["thread"], strict=True)
            # Those that built nothing were only seen: their numbers follow the others'.
            made = made.assign(
                thread=[
                    self.threads[log].setdefault(of, f"thread {len(self.threads[log])}")
                    for log, of in told
                ]
            )
        names = {name: self.names[log] for name, log in logs.items()}
        return made.assign(process=made["process"].map(lambda name: names.get(name, name)))
