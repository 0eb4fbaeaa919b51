"""JSON files of ours that are read back: closed by a checksum, and read by one reader."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from harness.jaxhooks.log_file import is_sealed, sealed
from harness.records.files import replaced

SEALED = 2
"""The schema from which on a file has a checksum."""

MOST_BYTES = 64 << 20
"""A larger file is none of ours."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
"""What can be counted; JSON may have any number."""

Milliseconds = Annotated[int, msgspec.Meta(ge=-8_640_000_000_000_000, le=8_640_000_000_000_000)]
"""Since 1970, as far as dates go."""

T = TypeVar("T")


class DamagedError(ValueError):
    """A file is not what was written; the text, a part of a sentence, says in what."""


def write(path: Path, value: Any, remedy: str = "Free space there, and run again.") -> None:
    """Write what is not empty, whole or not at all; `remedy` is what an error advises."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=1)
    with replaced(path, "wb", remedy, own=True) as handle:
        handle.write(sealed(text) + b"\n")


def read(path: Path, kind: type[T]) -> T:
    """Return what a file holds; one of before :data:`SEALED` need not have a checksum.

    `kind` has a field `schema`.

    Raises:
        FileNotFoundError: there is none.
        DamagedError: it cannot be read, is damaged, too large, or nothing of the kind.
    """
    return decode(data(path), kind)


def data(path: Path) -> bytes:
    """Return the bytes of a file that is not larger than one of ours can be.

    Raises:
        FileNotFoundError, DamagedError: as :func:`read`.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                raise DamagedError(f"it is larger than {MOST_BYTES >> 20} MiB")
            return file.read(MOST_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(error.strerror or "it cannot be opened") from None


def decode(text: bytes, kind: type[T]) -> T:
    """Return what JSON says, as :func:`read` does.

    Raises:
        DamagedError: as :func:`read`.
    """
    text = text.rstrip()
    closed = is_sealed(text)
    if closed is False:
        raise DamagedError("its checksum is wrong")
    try:
        text.decode()
        value = msgspec.json.decode(text, type=kind)
        check_numbers(text)
    except (ValueError, RecursionError) as error:  # msgspec's and Unicode's are such
        raise DamagedError(" ".join(str(error).split()) or "it is nested too deep") from None
    if closed is None and (getattr(value, "schema", 0) >= SEALED or _has_strange(text, value)):
        raise DamagedError("its checksum is missing")
    return value


def _has_strange(text: bytes, value: object) -> bool:
    """Tell whether there is a field that no release has written: `schema` with a wrong bit."""
    names = getattr(value, "__struct_fields__", None) or getattr(value, "__slots__", None)
    return names is not None and not msgspec.json.decode(text).keys() <= set(names)


_TO_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)


def check_numbers(text: bytes) -> None:
    """Raise where JSON holds an integer of which the differences do not fit into 64 bits."""

    def check(digits: str) -> None:
        if not abs(int(digits)) < 2**62:
            raise ValueError("one of its numbers is too large")

    if b"0" * 19 in text.translate(_TO_ZEROS):
        json.loads(text, parse_int=check)
