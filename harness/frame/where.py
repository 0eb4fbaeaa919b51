"""Conditions on rows, as `load(where=...)` takes them: a column and the values that are wanted."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness.errors import UsageError
from harness.frame.axes_text import is_missing
from harness.frame.frame import COLUMNS, COUNT, MOMENT, NUMBER, OBJECT, axis_columns

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from harness.frame.record_view import RecordView

LISTS = ("samples", "calibrated_samples")
"""Columns that hold a list of floats in each row."""

_OF_ALL_RECORDS = ("machine", "commit", "env", "night", "workload", "version")
"""Text that every record of a case has, even that of a process which could not find the case."""

_OF_DESCRIBED = ("target", "transform", "scenario", "precision")
"""Text that is the same in all records that know their case."""


class Where:
    """Conditions that a row must meet, all of them; each is a column and the values it may have."""

    def __init__(self, conditions: Mapping[str, Any] | None) -> None:
        """Check and keep `conditions`.

        Raises:
            UsageError: a column holds lists, or a value is none that the column can have.
        """
        self.columns: dict[str, list[Any]] = {}
        """Wanted values of the columns that every frame has."""
        self.axes: dict[str, list[Any]] = {}
        """Wanted values of axes; whether there is such an axis shows when rows are read."""
        for name, wanted in (conditions or {}).items():
            if name in COLUMNS:
                values = _several(wanted, (list, tuple, set, frozenset))
                self.columns[name] = [_checked(name, value) for value in values]
            else:
                self.axes[name] = _several(wanted, (list, set, frozenset))

    def __bool__(self) -> bool:
        return bool(self.columns or self.axes)

    def __str__(self) -> str:
        return " and ".join(
            f"{name} = {' or '.join(map(repr, values)) or 'nothing'}"
            for name, values in {**self.columns, **self.axes}.items()
        )

    def expression(self) -> ds.Expression | None:
        """Return the conditions on columns for pyarrow, or None without any."""
        import pyarrow.dataset as ds

        # `isin` of no values has no type, and would match what is null.
        tests = [
            ds.field(name).isin(values) if values else ds.scalar(False)
            for name, values in self.columns.items()
        ]
        return functools.reduce(operator.and_, tests) if tests else None

    def may_hold(self, record: RecordView) -> bool:
        """Return whether a row of `record` may meet the conditions, as far as it can tell.

        What it drops, no row needs: a condition on what processes of one case may say differently
        is left to :meth:`of`.
        """
        described = _OF_DESCRIBED if record.transform else ()
        return all(
            getattr(record, name) in self.columns[name]
            for name in (*_OF_ALL_RECORDS, *described)
            if name in self.columns
        )

    def has_axes(self, axes: Mapping[str, Any]) -> bool:
        """Return whether a case with these axes meets the conditions on axes."""
        return all(name in axes and axes[name] in values for name, values in self.axes.items())

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that meet the conditions, without the axes that none of them has.

        Raises:
            UsageError: there is no such axis.
        """
        if not self:
            return frame
        for name, values in self.columns.items():
            frame = frame[frame[name].isin(values)]
        if len(frame):
            check_axes(self.axes, frame.columns)
        for name, values in self.axes.items():
            if len(frame):
                frame = frame[[cell in values for cell in frame[name]]]
        empty = [name for name in axis_columns(frame) if all(map(is_missing, frame[name]))]
        return frame.drop(columns=empty).reset_index(drop=True)


def choose_columns(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns; of a frame without rows an axis, which nobody can know, is empty."""
    if len(frame):
        check_axes((name for name in columns if name not in COLUMNS), frame.columns)
    return frame.reindex(columns=list(columns)) if frame.empty else frame[list(columns)]


def check_axes(names: Iterable[str], known: Collection[str]) -> None:
    """Raise :class:`UsageError` for a name that is no column of the rows that were read."""
    for name in names:
        if name not in known:
            axes = sorted(set(known) - set(COLUMNS))
            raise UsageError(
                f"There is no column {name!r}. There are: {', '.join(COLUMNS)}; and the axes "
                f"{', '.join(axes) or '(none)'}."
            )


def typed(choices: Sequence[str]) -> dict[str, list[Any]]:
    """Return the conditions of `COLUMN=VALUE` texts; a column that is repeated has several values.

    Raises:
        UsageError: a text is not of that form.
    """
    found: dict[str, list[Any]] = {}
    for choice in choices:
        name, equals, text = choice.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--where {choice!r}: expected COLUMN=VALUE, such as stage=compile.")
        found.setdefault(name.strip(), []).extend(_readings(name.strip(), text.strip()))
    return found


def _readings(name: str, text: str) -> list[Any]:
    """Return what a typed text may mean: an axis may hold the number 8 or the text "8"."""
    kind = COLUMNS.get(name)
    if kind is not None and kind not in (NUMBER, COUNT):
        return [text]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return [text]
    return [value] if kind else [text, value]


def _several(wanted: Any, kinds: tuple[type[Collection[Any]], ...]) -> list[Any]:
    return list(wanted) if isinstance(wanted, kinds) else [wanted]


def _checked(name: str, value: Any) -> Any:
    kind = COLUMNS[name]
    if name in LISTS:
        raise UsageError(f"{name} holds lists, which no condition can be put on.")
    if kind in (NUMBER, COUNT):
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise UsageError(f"{name} = {value!r}: {name} holds numbers; expected a finite one.")
        return float(value)
    if kind == MOMENT:
        return _moment(name, value)
    if not isinstance(value, str):
        held = "JSON text" if kind == OBJECT else "text"
        raise UsageError(f"{name} = {value!r}: {name} holds {held}; expected text.")
    return value


def _moment(name: str, value: Any) -> pd.Timestamp:
    try:
        moment = pd.Timestamp(value)
        if pd.isna(moment):
            raise ValueError(value)
    except (ValueError, TypeError):
        raise UsageError(
            f"{name} = {value!r}: expected a time, such as 2026-11-20T03:00:00Z."
        ) from None
    moment = moment.tz_localize("UTC") if moment.tzinfo is None else moment.tz_convert("UTC")
    return moment.as_unit("ms")


def filtered(
    records: Iterable[RecordView], where: Where, covered: set[tuple[str, str, str, str]]
) -> Iterator[RecordView]:
    """Yield the records that `where` may hold, and note in `covered` what there are records of."""
    for record in records:
        covered.add((record.machine, record.commit, record.workload, record.env))
        if where.may_hold(record):
            yield record
