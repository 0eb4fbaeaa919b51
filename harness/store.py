"""The append-only store of records: one file, any number of writers, nothing ever rewritten."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from harness.errors import StoreError
from harness.records import Problems, Record, encode, read_file


class Store:
    """One records file, appended to by any number of processes at once.

    A record is durable (written whole and synced) when :meth:`append` returns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> None:
        """Make the folder and prove that it can be written, before anything is measured."""
        self.append(())

    def append(self, records: Iterable[Record]) -> None:
        """Append `records`; raise :class:`StoreError` and leave the file as it was if it cannot."""
        payload = b"".join(map(encode, records))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise self._error("cannot be written", error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            size = os.fstat(fd).st_size
            # A writer that was killed may have left half a line: ours must not be glued to it.
            if payload and size and os.pread(fd, 1, size - 1) != b"\n":
                payload = b"\n" + payload
            try:
                rest = memoryview(payload)
                while rest:
                    rest = rest[os.write(fd, rest) :]
                os.fsync(fd)
            except OSError as error:
                with contextlib.suppress(OSError):  # a half line that stays is skipped when read
                    os.ftruncate(fd, size)
                raise self._error("could not take the new records", error) from error
        finally:
            os.close(fd)

    def read(self, problems: Problems | None = None) -> list[Record]:
        """Return the records that count: for each key and replicate, the last one written."""
        if not self.path.exists():
            return []
        latest: dict[tuple[str, str], Record] = {}
        for record in read_file(self.path, problems if problems is not None else Problems()):
            latest[record.key, record.replicate] = record
        return list(latest.values())

    def _error(self, what: str, error: OSError) -> StoreError:
        return StoreError(
            f"The records file {self.path} {what}: {error.strerror or error}. Everything recorded "
            "before is intact. Free space or permissions there, or choose another folder with "
            "--results (HARNESS_RESULTS under asv), and run again: it resumes."
        )


def store_path(results: Path, machine: str, commit: str, env: str, night: str = "") -> Path:
    """Return where the records of one commit, environment and night belong in a results tree."""
    name = "-".join(filter(None, [commit[:8] or "nocommit", env, night]))
    return results / machine / "records" / f"{name}.jsonl"


def record_files(results: Path) -> list[Path]:
    """Return every records file of a results tree, sorted."""
    return sorted(results.glob("*/records/*.jsonl"))
