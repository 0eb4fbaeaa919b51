"""What the probe found: data that a file can hold, one report per installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.errors import ExitCode, HarnessError, UsageError

SCHEMA = 1
"""Version of the file's layout; a file of another version is refused."""

Verdict = Literal["pass", "fail", "n/a"]


class ProbeError(HarnessError):
    """The probe cannot run at all on this installation."""

    exit_code = ExitCode.UNUSABLE


class Unmet(Exception):
    """What a row needs, or expects on its way, did not come true; the text says what happened."""


class NotApplicable(Exception):
    """This machine or this JAX cannot show what a row asks about; the text is the reason."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What one process did to a cache directory.

    Attributes:
        label: What the process was for, such as `fill` or `again`.
        requests: Compilations that asked the cache.
        hits: Compilations that the cache answered.
        writes: Entries that JAX says it wrote; it says so even when the write then fails.
        files_before: Entries in the directory before the process.
        files_after: Entries after it.
        bytes_after: Their size in bytes.
        call_s: Seconds of the first calls, compilation included, by the process's own clock.
        process_s: Seconds from the start of the process to its end.
        warnings: What the process warned of, without this machine's paths.
        error: Why it did not finish, or nothing.
        killed: Whether it died of SIGKILL, as a row may want.
        correct: Whether every result was right.
    """

    label: str
    requests: int = 0
    hits: int = 0
    writes: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_after: int = 0
    call_s: float = 0.0
    process_s: float = 0.0
    warnings: tuple[str, ...] = ()
    error: str = ""
    killed: bool = False
    correct: bool = False

    @property
    def fine(self) -> bool:
        """Whether the process ran to its end and its results were right."""
        return self.correct and not self.error and not self.killed

    @property
    def hit(self) -> bool:
        """Whether the cache answered everything it was asked."""
        return self.fine and self.requests == self.hits > 0


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One row: what was expected, what happened, and the processes that show it."""

    row: str
    title: str
    expectation: str
    verdict: Verdict
    happened: str
    runs: tuple[Run, ...] = ()
    seconds_s: float = 0.0


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """What was probed; no path of the machine is kept."""

    jax: str
    jaxlib: str
    python: str
    system: str
    modules: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of one installation."""

    installation: Installation
    date: str
    findings: tuple[Finding, ...]
    harness: str = ""
    schema: int = SCHEMA

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The rows that did not go as a user would expect."""
        return tuple(finding for finding in self.findings if finding.verdict == "fail")


def save(path: Path, reports: list[Report]) -> None:
    """Write reports to a JSON file.

    Raises:
        UsageError: The file cannot be written.
    """
    _write(path, msgspec.json.format(msgspec.json.encode(reports), indent=1) + b"\n", "wb")


def check_writable(path: Path) -> None:
    """Find out before a minute of work whether `save` can write a file, which stays as it was.

    Raises:
        UsageError: It cannot.
    """
    there = path.exists()
    _write(path, b"", "ab")
    if not there:
        path.unlink()


def _write(path: Path, data: bytes, mode: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, mode) as file:
            file.write(data)
    except OSError as error:
        raise UsageError(
            f"The report cannot be written to {path}: {error.strerror}. Expected a file name in a "
            "folder that you can write to: give another one with --json."
        ) from error


def load(path: Path) -> list[Report]:
    """Read reports back.

    Raises:
        UsageError: The file is missing, or is not what `save` writes.
    """
    advice = "Expected a file that `harness cache probe --json FILE` wrote: write it again."
    try:
        raw: Any = msgspec.json.decode(path.read_bytes())
        versions = {one["schema"] for one in raw}
        if versions - {SCHEMA}:
            raise UsageError(
                f"{path} has layout {sorted(versions)}, this version reads {SCHEMA}. {advice}"
            )
        return msgspec.convert(raw, list[Report])
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}. {advice}") from error
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is not a report of the probe ({error}). {advice}") from error
