"""Write a profile's log line by line: into this process's file, or into memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import ProfileError
from harness.watch.events import Line, Started, encoded
from harness.watch.log_file import LogFile


@dataclass
class Writer:
    """Appends lines to a file of this process, or keeps them in memory.

    A line that cannot be written never raises: the program goes on. It waits for room on the disk,
    and is counted as lost when too many wait.
    """

    folder: Path | None
    kept: list[Line] = field(default_factory=list)
    file: LogFile | None = None
    """Where lines go; one that was begun already is gone on with."""
    since_ns: int = 0
    """Builds that began before this are not its own."""

    @property
    def lost(self) -> int:
        """How many lines could not be written."""
        return self.file.lost if self.file is not None else 0

    def open(self) -> None:
        """Make this process's file.

        Raises:
            ProfileError: if the folder cannot be made or written to.
        """
        if self.folder is None or self.file is not None:
            return
        try:
            file = LogFile(str(self.folder))
            file.open()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise ProfileError(
                f"The profile's folder {self.folder} cannot be written: {why}. "
                "Give another one with -o."
            ) from None
        self.file = file

    def write(self, line: Line) -> None:
        """Append a line; thread-safe."""
        if self.file is None:
            self.kept.append(line)
        elif not (isinstance(line, Started) and self.file.first):
            try:
                text = encoded(line)
            except Exception:  # whatever it is, it is not the program's to see
                self.file.lost += 1
            else:
                self.file.append(text)

    def close(self) -> None:
        """Close the file, if there is one."""
        if self.file is not None:
            self.file.close()
