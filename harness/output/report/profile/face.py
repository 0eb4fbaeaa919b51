"""What `harness.profile` and `harness.load_profile` give: a profile that can be asked."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.output.profile import summary
from harness.output.report import files
from harness.profiles.recorded import Recorded, read
from harness.records.units import counted

if TYPE_CHECKING:
    import pandas as pd


class Profile(Recorded):
    """What was recorded of a program, by :func:`harness.profile` or `harness profile`."""

    def __init__(self, *given: Any, sample_ms: float = 25.0, **named: Any) -> None:
        super().__init__(*given, **named)
        self._sample_ms = sample_ms

    def open(self) -> Profile:
        """Begin to record; see :func:`harness.profile`."""
        self.record(self._sample_ms)
        return self

    def __enter__(self) -> Profile:
        return self.open()

    def __exit__(self, *raised: object) -> None:
        self.close()

    def summary(
        self, width: int = 100, lines: int | None = 24, mute: Sequence[str] = ()
    ) -> list[str]:
        """Return the answer as lines of text that fit a screen.

        Args:
            width: of a line, in characters; 60 at least.
            lines: how many there are at most; where even the sums, the first remedy and the next
                steps need more, these stay. None for all findings.
            mute: identifiers of remedies, `JH050`: findings that have one of them are one line.
        """
        return summary(self, width, lines, mute)

    def frame(self, table: str = "builds") -> pd.DataFrame:
        """Return one of the tables as a pandas frame; docs/profile.md has their columns.

        Args:
            table: `time`, `functions`, `builds`, `causes`, `sites`, `cache`, `eager` or `threads`.

        Raises:
            UsageError: if there is no such table.
        """
        from harness.output.profile_tables import frame  # pandas: half a second

        return frame(self, table)

    def report(self, path: Path | str) -> int:
        """Write everything known as one HTML file that loads nothing; return its size in bytes.

        Raises:
            UsageError: a package that reports need is not installed.
            StoreError: the file cannot be written.
        """
        files.check_report()
        # altair: a second, of the extra `figures`
        from harness.output.report.profile.page import write

        return write(self, Path(path))

    def __repr__(self) -> str:
        where = f" in {self.folder}" if self.folder is not None else ""
        builds = counted(len(self.builds), "build")
        count = f"{builds}, {counted(len(self.processes), 'process')}"
        return f"<harness.Profile: {count}{where}; .summary(), .frame('functions')>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(chr(10).join(self.summary()))}</pre>"


def load_profile(folder: Path | str) -> Profile:
    """Read a profile from its folder; one that is still being written is read as far as it is.

    Args:
        folder: what `harness profile -o FOLDER` or `harness.profile(folder)` wrote.

    Raises:
        ProfileError: if there is none.
    """
    recorded = read(folder)
    return Profile(
        recorded.processes, recorded.folder, recorded.run, run_damage=recorded.run_damage
    )


def profile(folder: Path | str | None = None, *, sample_ms: float = 25.0) -> Profile:
    """Return a profile of what JAX builds in this process, on all its threads, while it is open.

    It is open in a `with` block, or from `open()` to `close()`, which may be cells of a notebook,
    and can be asked at any time, inside and afterwards. Several may be open at once, in one thread
    or in many; each has what was built in its own time. What the body raises passes. JAX is
    imported where the program has not done so yet.

    Args:
        folder: where to write the log, a file per process: what is built in a child that this
            process forks is there as well. In memory only without it.
        sample_ms: how often, in milliseconds, to look where threads are; 0 for never.

    Opening it raises:
        ProfileError: if JAX is not installed, the folder cannot be written, or the running JAX is
            not one that is known.
        UsageError: it was open before.
    """
    return Profile(folder=Path(folder) if folder is not None else None, sample_ms=sample_ms)
