"""On a worker: what it is, and one process that measures for the client."""

from __future__ import annotations

import io
import multiprocessing
import os
import zipfile
from dataclasses import dataclass, field
from typing import Any

import msgspec
import psutil
from distributed import Reschedule, Worker, get_worker
from distributed.config import defaults
from msgspec.structs import replace

from harness import __version__, targets
from harness.errors import HarnessError
from harness.jaxhooks.temporary import temporary_folder
from harness.measure.execution import execute
from harness.measure.job import Job, JobCase, decode_job
from harness.measure.lock import alone, host, processor
from harness.records import environment
from harness.records.schema import Record, encode


class Answer(msgspec.Struct, kw_only=True):
    """What a worker is, and what it has measured."""

    place: tuple[str, str, str]
    """Machine, environment and identity; see :mod:`harness.records.environment`."""
    host: str
    """See :func:`harness.measure.lock.host`."""
    versions: dict[str, str]
    missing: dict[str, str]
    """Targets that the machine does not have, each with the reason."""
    refused: str = ""
    """Why nothing was or can be measured; can be put after the worker's name."""
    address: str = ""
    records: bytes = b""


def answer(versions: dict[str, str], job: bytes = b"", archive: bytes = b"") -> bytes:
    """Return an :class:`Answer`: with the records of a job, whose workload is in a zip archive."""
    _undo_nanny()
    environment.surroundings.cache_clear()  # packages may be upgraded under a worker
    here = {"harness": __version__, **environment.versions()}
    missing = {name: target.lacking() for name, target in targets.TARGETS.items()}
    result = Answer(
        place=(environment.machine_name(), environment.env_name(), environment.identity()),
        host=host(),
        address=get_worker().address if job else "",
        versions=environment.versions(),
        missing={name: why for name, why in missing.items() if why},
        refused="; ".join(
            f"has {name} {here[name] or 'not at all'}, and the client {version}"
            for name, version in versions.items()
            if here[name] != version
        ),
    )
    if job and not result.refused:
        _measure(decode_job(job), archive, result)
    return msgspec.msgpack.encode(result)


def _measure(job: Job, archive: bytes, result: Answer) -> None:
    worker = get_worker()
    listener = _Listener(worker, worker.get_current_task())
    try:
        with temporary_folder() as folder, alone([processor()], lambda holder: listener.check()):
            if archive:
                zipfile.ZipFile(io.BytesIO(archive)).extractall(folder)
                job.source = replace(job.source, file=str(folder / job.source.file))
            (folder / ".git").mkdir()  # names of files in records start here, as in a repository
            job.base["worker"] = str(worker.name)
            if job.platforms != "cpu" and job.target in targets.TARGETS:
                job.platforms = targets.TARGETS[job.target].platforms  # cuda or rocm
            execute(job, listener)
    except (HarnessError, OSError) as error:  # a disk is full, or no process can be started
        result.refused = f"cannot measure: {type(error).__name__}: {error}"
    result.records = b"".join(map(encode, listener.records.values()))


@dataclass
class _Listener:
    """Collects records, and ends the measurement when nobody wants it any more."""

    worker: Worker
    task: Any
    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    """By key and process: a case may come again, with what its process has counted at its end."""

    def keep(self, record: Record, ref: JobCase | None, hopeless: bool = False) -> None:
        self.records[record.key, record.process] = record

    def check(self) -> None:
        """Raise where the task was cancelled, or the worker is closing: another may take it."""
        state = self.worker.state.tasks.get(self.task)
        closing = self.worker.status.name in ("closing", "closed", "failed")
        if closing or state is None or state.state != "executing":
            raise Reschedule

    def tell(self, case: str, stage: str, ref: JobCase | None = None) -> None: ...


def _undo_nanny() -> None:
    """Take what Dask's nanny sets by default out of the environment, such as OMP_NUM_THREADS=1."""
    if "from Nanny" in multiprocessing.current_process().name:
        given = psutil.Process(os.getppid()).environ()
        usual = defaults["distributed"]["nanny"]["pre-spawn-environ"]
        for name, value in {**usual, "PYTHONHASHSEED": 6640}.items():  # distributed 2026.8
            if name not in given and os.environ.get(name) == str(value):
                del os.environ[name]
