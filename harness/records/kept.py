"""Programs that a sweep kept, so that two commits can be compared long after they were measured.

One file per program, whichever cases and commits it came from: the fingerprint is its name.
"""

from __future__ import annotations

import gzip
import io
import tempfile
import zlib
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import StoreError
from harness.program.text import normalise
from harness.records import json_file
from harness.records.files import replaced
from harness.records.store import machine_folder

SCHEMA = 1


class KeptProgram(msgspec.Struct):
    """The texts of a program, without locations."""

    schema: int
    hlo: str
    """As XLA optimised it: what the fingerprint is the hash of."""
    stablehlo: str
    """As JAX lowered it, in the case that came first."""


def folder_of(results: Path, machine: str) -> Path:
    """Return where the programs of a machine are kept in a results tree."""
    return machine_folder(results, machine) / "programs"


def path_of(folder: Path, fingerprint: str) -> Path:
    """Return the file of one program."""
    return folder / f"{fingerprint}.json.gz"


def open_folder(folder: Path) -> None:
    """Make the folder and prove that it can be written, before anything is measured."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StoreError(
            f"Programs cannot be kept in {folder}: {error.strerror or error}. Free space or "
            "permissions there, or run without --keep-programs (HARNESS_KEEP_PROGRAMS)."
        ) from error


def keep(folder: Path, fingerprint: str, lowered: Any, compiled: Any) -> None:
    """Write the texts of a program, unless they are there.

    `lowered` and `compiled` are the objects of `jax.stages`. A reader sees the whole file or none,
    and equal texts are equal bytes.
    """
    path = path_of(folder, fingerprint)
    if not fingerprint or path.exists():
        return
    texts = KeptProgram(SCHEMA, normalise(compiled.as_text()), lowered.as_text())
    data = gzip.compress(msgspec.json.encode(texts), mtime=0)
    remedy = "Free space there, or run without --keep-programs."
    with replaced(path, "wb", remedy, own=True) as file:
        file.write(data)


def read(folder: Path, fingerprint: str) -> KeptProgram | None:
    """Return a program that was kept, or None if it was not."""
    path = path_of(folder, fingerprint)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(json_file.data(path))) as file:
            text = file.read(json_file.MOST_BYTES + 1)
        if len(text) > json_file.MOST_BYTES:
            raise json_file.DamagedError(f"it is larger than {json_file.MOST_BYTES >> 20} MiB")
        program = json_file.decode(text, KeptProgram)
    except FileNotFoundError:
        return None
    except (OSError, EOFError, zlib.error, json_file.DamagedError) as error:
        raise StoreError(
            f"The program in {path} cannot be read: {error}. Delete the file; `harness run --fresh "
            "--keep-programs` writes it anew."
        ) from error
    return program if program.schema == SCHEMA else None
