"""The append-only store of records: one file, any number of writers, nothing ever rewritten."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from harness.errors import StoreError, UsageError
from harness.records.schema import Problems, Record, decode, encode, read_file

with contextlib.suppress(ImportError):  # Windows has none, and only reads
    import fcntl


class Store:
    """One records file, appended to by any number of processes at once.

    A record is durable (written whole and synced) when :meth:`append` returns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> None:
        """Make the folder and prove that it can be written, before anything is measured."""
        self.append(())

    def append(self, records: Iterable[Record]) -> tuple[int, int]:
        """Append `records`; return the size of the file before and after.

        Raises:
            StoreError: it cannot be done; the file is as it was.
        """
        payload = b"".join(map(encode, records))
        try:
            fd = self._open()
        except OSError as error:
            raise self._error("cannot be written", error) from error
        try:
            size = os.fstat(fd).st_size
            try:
                # A writer that was killed may have left half a line: ours must not be glued to it.
                if payload and size and os.pread(fd, 1, size - 1) != b"\n":
                    payload = b"\n" + payload
                rest = memoryview(payload)
                while rest:
                    rest = rest[os.write(fd, rest) :]
                if payload:
                    os.fsync(fd)
            except OSError as error:
                with contextlib.suppress(OSError):  # a half line that stays is skipped when read
                    os.ftruncate(fd, size)
                raise self._error("could not take the new records", error) from error
            return size, size + len(payload)
        finally:
            os.close(fd)

    def _open(self) -> int:
        """Open the file and lock it, so that it is this file when it is written to."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            # No link: a tree may come from elsewhere, and with it a link to anything.
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            fd = os.open(self.path, flags, 0o644)
            fcntl.flock(fd, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), os.stat(self.path)):
                    return fd
            os.close(fd)  # somebody has removed it since

    def read(self, problems: Problems | None = None) -> list[Record]:
        """Return the records that count: for each key and replicate, the last one written."""
        if not self.path.exists():
            return []
        latest: dict[tuple[str, str], Record] = {}
        for record in read_file(self.path, problems if problems is not None else Problems()):
            latest[record.key, record.replicate] = record
        return list(latest.values())

    def read_from(self, offset: int) -> tuple[list[Record], int]:
        """Return the records that were appended after `offset`, and where they end."""
        records = []
        try:
            with self.path.open("rb") as handle:
                handle.seek(offset)
                for line in handle:
                    if not line.endswith(b"\n"):
                        break  # somebody is at it
                    offset += len(line)
                    record = decode(line.rstrip(b"\n"))
                    if isinstance(record, Record):
                        records.append(record)
        except OSError:
            return [], offset
        return records, offset

    def size(self) -> int:
        """Return how many bytes there are."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def _error(self, what: str, error: OSError) -> StoreError:
        return StoreError(
            f"The records file {self.path} {what}: {error.strerror or error}. Everything recorded "
            "before is intact. Free space or permissions there, or choose another folder with "
            "--results (HARNESS_RESULTS under asv), and run again: it resumes."
        )


def machine_folder(results: Path, machine: str) -> Path:
    """Return a machine's folder in a results tree."""
    return results / _plain(machine, "a machine", "Set HARNESS_MACHINE, or --machine.")


def is_plain(name: str) -> bool:
    """Tell whether a name is one part of a path, which is no hidden one, and one line."""
    return bool(name) and name.isprintable() and name[0] != "." and not set(name) & set("/\\")


def _plain(name: str, what: str, remedy: str) -> str:
    if not is_plain(name):
        raise UsageError(
            f"{name!r} is no name for {what}: expected one that can be a folder's, without slashes "
            f"and control characters, and without a dot in front. {remedy}"
        )
    return name


def store_path(results: Path, machine: str, commit: str, env: str, night: str = "") -> Path:
    """Return where the records of one commit, environment and night belong in a results tree."""
    name = "-".join(filter(None, [commit[:8] or "nocommit", env, night]))
    name = _plain(name, "an environment", "It comes from asv, or from a worker of a fleet.")
    return machine_folder(results, machine) / "records" / f"{name}.jsonl"


def record_files(results: Path) -> list[Path]:
    """Return every records file of a results tree, sorted."""
    return sorted(results.glob("*/records/*.jsonl"))


def is_tree(path: Path) -> bool:
    """Return whether `path` is a results tree, or one machine's folder in it."""
    kinds = ("records", "machine.json", "*/records", "*/machine.json")
    return any(any(path.glob(kind)) for kind in kinds)
