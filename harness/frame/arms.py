"""Arms: the two sides of a comparison, as a user names them, and the records behind their rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.errors import NotMeasured, UsageError
from harness.frame.cases import key_of_record, key_of_row
from harness.frame.frame import axis_columns
from harness.frame.load import INDEXED, everything, narrowed, record_files_of
from harness.frame.pairs import DIGESTS, Arm
from harness.records.schema import Problems, Record, read_file

_WORDS = ("commit", "jax", "env", "machine", "target", "scenario", "night")
"""Columns in which a bare word is looked up."""

_SHOWN = 12


def resolve(text: str, frame: pd.DataFrame | None, commits: Mapping[str, str]) -> Arm:
    """Return the arm that `text` names.

    `frame` is where arms that are no files are looked up; `commits` are the hashes of names of
    commits (:func:`harness.records.git.commits_named`).
    """
    if not text.strip():
        raise UsageError("An arm is empty: expected a commit, column=value, or a path.")
    is_path = os.path.exists(text)
    selects = "=" in text and not is_path
    fits = {} if frame is None or selects else _fits(text, frame, commits)
    if len(fits) + is_path > 1:
        ways = [*([f"./{text}"] if is_path else []), *(f"{k}={v}" for k, v in fits.items())]
        raise UsageError(f"{text!r} may mean {' or '.join(ways)}. Say which.")
    if is_path:
        return Arm(text, everything(text))
    if frame is None:
        raise NotMeasured(
            f"There are no results to find {text!r} in. Name a results tree with --results, or "
            "give both arms as paths."
        )
    where = _wanted(text, frame) if selects else fits
    if where:
        return _selected(text, where, frame, commits)
    if commit := commits.get(text):
        raise NotMeasured(
            f"{text!r} is commit {commit[:8]}, which was not measured. Measured are: "
            f"{_values(frame, 'commit')}."
        )
    there = "; ".join(f"{name}: {_values(frame, name)}" for name in _WORDS)
    raise UsageError(
        f"{text!r} is no path, no commit that git knows, and nothing in the results. {there}."
    )


def rows_of_arms(path: Path, a: str, b: str, commits: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows of a results tree that two arms may select, as :func:`resolve` takes them."""

    def narrow(index: pd.DataFrame) -> Mapping[str, Sequence[str]]:
        try:
            arms = [resolve(text, index, commits).where for text in (a, b)]
        except UsageError:  # its text lists what all rows have
            return {}
        names = [name for name in ("machine", "commit") if all(name in arm for arm in arms)]
        return {name: [arm[name] for arm in arms] for name in names}

    if path.is_file() or any(map(os.path.exists, (a, b))):
        return everything(path)
    return narrowed(path, narrow)


def _wanted(text: str, frame: pd.DataFrame) -> dict[str, str]:
    columns = (*INDEXED, *axis_columns(frame))
    where: dict[str, str] = {}
    # A comma also stands within a tuple: only one that a name and = follow ends a value.
    for part in re.split(r",(?=\s*[\w.]+\s*=)", text):
        name, sign, value = (one.strip() for one in part.partition("="))
        if not sign or name not in columns:
            raise UsageError(
                f"{part!r} in the arm {text!r} selects nothing: expected column=value, with one of "
                f"the columns {', '.join(columns)}."
            )
        if name in where:
            raise UsageError(f"The arm {text!r} names {name} twice.")
        where[name] = value
    return where


def _selected(
    text: str, where: Mapping[str, str], frame: pd.DataFrame, commits: Mapping[str, str]
) -> Arm:
    rows, full = frame, {}
    for name, wanted in where.items():
        chosen, value = _matching(rows, name, wanted, commits)
        if not chosen.any():
            among = "" if len(rows) == len(frame) else " with the rest of the arm"
            raise UsageError(
                f"The arm {text!r} fits no row: {name} is {_values(rows, name)}{among}, not "
                f"{wanted or 'an empty value'}."
            )
        rows, full[name] = rows[chosen], value
    if "commit" in where and "dirty" not in where and (rows["dirty"] == "").any():
        # A commit means what was committed, where that was measured.
        rows = rows[rows["dirty"] == ""]
    return Arm(text, rows, full)


def _matching(
    frame: pd.DataFrame, name: str, wanted: str, commits: Mapping[str, str]
) -> tuple[pd.Series[bool], str]:
    """Return which rows have the value `wanted` in a column, and that value in full."""
    texts = frame[name] if name in INDEXED else frame[name].map(str)
    if name not in DIGESTS or not wanted:
        return texts == wanted, wanted
    if name == "commit":
        full = commits.get(wanted)
        if full and (texts == full).any():
            return texts == full, full
    beginning = sorted(value for value in texts.unique() if value.startswith(wanted.lower()))
    if len(beginning) > 1:
        several = ", ".join(value[:12] for value in beginning)
        raise UsageError(f"{name}={wanted} is the beginning of several: {several}. Say more of it.")
    value = beginning[0] if beginning else wanted
    return texts == value, value


def _fits(word: str, frame: pd.DataFrame, commits: Mapping[str, str]) -> dict[str, str]:
    """Return the columns in which a word is a value, and that value."""
    fits: dict[str, str] = {}
    for name in _WORDS:
        is_hash = re.fullmatch(r"[0-9a-fA-F]{4,40}", word)
        if name == "commit" and not is_hash and word not in commits:
            continue
        chosen, value = _matching(frame, name, word, commits)
        if chosen.any():
            fits[name] = value
    return fits


def _values(frame: pd.DataFrame, name: str) -> str:
    values = list(dict.fromkeys(map(str, frame[name].dropna())))
    shown = [value[:8] if name in DIGESTS else value for value in values[-_SHOWN:] if value]
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return ", ".join(shown) + more if shown else "none"


@dataclass(frozen=True)
class StoredRecords:
    """The records behind an arm, read anew whenever they are gone through."""

    arm: Arm
    results: Path
    """The tree that holds those of an arm that is no path."""

    def __iter__(self) -> Iterator[Record]:
        yield from records_under(Path(self.arm.text) if not self.arm.where else self.results)


def records_under(place: Path) -> Iterator[Record]:
    """Yield the records of a results tree or file; none of Parquet files, and of what asv wrote."""
    if place.exists() and place.suffix not in (".parquet", ".json"):
        for path in record_files_of(place):
            yield from read_file(path, Problems())


def records_behind(
    rows: Sequence[Mapping[str, Any] | None], records: Iterable[Record], columns: Sequence[str]
) -> list[list[Record]]:
    """Return the records of each row, one per process, the latest of each; none of no row.

    `columns` are those of axes.
    """
    keys = [key_of_row(row, columns) if row else () for row in rows]
    processes: dict[tuple[Any, ...], dict[str, Record]] = {key: {} for key in keys if key}
    workloads = {key[0] for key in processes}
    for record in records:
        key = key_of_record(record) if record.workload in workloads else ()
        if key in processes and record.comparison is None:
            processes[key][record.replicate] = record
    return [list(processes.get(key, {}).values()) for key in keys]
