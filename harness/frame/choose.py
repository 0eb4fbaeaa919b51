"""Choose rows of a frame: by conditions on columns, by workload, and by what was measured last."""

from __future__ import annotations

import ast
import functools
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from harness.errors import HarnessWarning, UsageError, find_name, match_names
from harness.frame.columns import COLUMNS, COUNT, JSON, LISTS, MOMENT, NUMBER, is_missing
from harness.frame.frame import INSTRUMENTS, ORIGIN, axis_columns, ordinary, origin_text
from harness.records.environment import machine_name
from harness.records.schema import Head, Record
from harness.stages.registry import names
from harness.workload.filters import Filters, is_value, wanted_values

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OF_ALL_RECORDS = ("machine", "commit", "env", "night", "workload", "version")
"""Text that every record of a case has, even that of a process which could not find the case."""

_OF_DESCRIBED = ("target", "transform", "scenario", "precision")
"""Text that is the same in all records that know their case."""

COORDINATES = ("transform", "target", "precision", "scenario")
"""Columns that tell cases apart, besides their axes."""


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

    def may_hold(self, record: Head | Record) -> bool:
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

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that meet the conditions, without the axes that none of them has.

        Raises:
            UsageError: there is no such axis.
        """
        if not self:
            return frame
        every = axis_columns(frame)
        for name, values in self.columns.items():
            frame = frame[frame[name].isin(values)]
        if len(frame):
            check_axes(self.axes, frame.columns)
        for name, values in self.axes.items():
            if len(frame):
                frame = frame[[cell in values for cell in frame[name]]]
        empty = [name for name in every if all(map(is_missing, frame[name]))]
        return frame.drop(columns=empty).reset_index(drop=True)


def choose_columns(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns; of a frame without rows an axis, which nobody can know, is empty."""
    if len(frame):
        check_axes((name for name in columns if name not in COLUMNS), frame.columns)
    return frame.reindex(columns=list(columns)) if frame.empty else frame[list(columns)]


def check_axes(names: Iterable[str], existing: Collection[str]) -> None:
    """Raise :class:`UsageError` for a name that is no column of the rows that were read."""
    for name in names:
        if name not in existing:
            axes = sorted(set(existing) - set(COLUMNS))
            raise UsageError(
                f"There is no column {name!r}. There are: {', '.join(COLUMNS)}; and the axes "
                f"{', '.join(axes) or '(none)'}."
            )


def typed(choices: Sequence[str]) -> dict[str, list[Any]]:
    """Return the conditions of `COLUMN=VALUE` texts; a column that is repeated has several values.

    Raises:
        UsageError: a text is not of that form.
    """
    accepted: dict[str, list[Any]] = {}
    for choice in choices:
        name, equals, text = choice.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--where {choice!r}: expected COLUMN=VALUE, such as stage=compile.")
        accepted.setdefault(name.strip(), []).extend(_readings(name.strip(), text.strip()))
    return accepted


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
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not abs(value) <= sys.float_info.max:
            raise UsageError(f"{name} = {value!r}: {name} holds numbers; expected a finite one.")
        return float(value)
    if kind == MOMENT:
        return _moment(name, value)
    if not isinstance(value, str):
        held = "JSON text" if kind == JSON else "text"
        raise UsageError(f"{name} = {value!r}: {name} holds {held}; expected text.")
    return value


def _moment(name: str, value: Any) -> pd.Timestamp:
    try:
        moment = pd.to_datetime(value, utc=True)
    except (ValueError, TypeError):
        moment = pd.NaT
    if not isinstance(moment, pd.Timestamp):  # a list of them, or none
        raise UsageError(f"{name} = {value!r}: expected a time, such as 2026-11-20T03:00:00Z.")
    return moment.as_unit("ms")


def narrow(frame: pd.DataFrame, select: Sequence[str], latest: bool) -> pd.DataFrame:
    """Return the rows whose workload matches any of `select`, of the newest origins if `latest`.

    Every machine has a newest origin of its own, by its own clock: no machine hides another.

    Raises:
        UsageError: an expression is wrong, or matches no workload.
    """
    if select:
        names = sorted(frame["workload"].unique())
        chosen = {name for each in select for name in match_names(each, names, "workload")}
        frame = frame[frame["workload"].isin(chosen)]
    if latest:
        origins = frame.groupby(ORIGIN, sort=False, dropna=False)["started_at"]
        number, moments = origins.ngroup(), origins.max().reset_index()
        moments = moments.sort_values("started_at", kind="stable")
        dated = moments[moments["started_at"].notna()]
        newest = dated.drop_duplicates("machine", keep="last")
        undated = moments[~moments["machine"].isin(newest["machine"])]
        frame = frame[number.isin([*newest.index, *undated.index])]
    return frame


def first_look(frame: pd.DataFrame, asked: Collection[str]) -> tuple[pd.DataFrame, str]:
    """Return the rows to look at first, and in words what of the others is left out.

    Columns in `asked` are not narrowed, and nothing is that would leave no row.
    """
    omitted = []
    before = len(frame)
    for what, columns, kept in _NARROWER:
        if not columns & set(asked):
            rest = kept(frame)
            if 0 < len(rest) < len(frame):
                frame = rest
                omitted.append(what)
    text = f"{before - len(frame):,} of {before:,} rows: {', '.join(omitted)}" if omitted else ""
    return frame.reset_index(drop=True) if omitted else frame, text


def _run_here(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the targets that ran on their machine, where any did."""
    runs = frame["stage"].isin(names("run")) & frame["value"].notna()
    own = runs & ~frame["workload"].isin(INSTRUMENTS)
    place = pd.MultiIndex.from_frame(frame[["machine", "target"]])
    measured = frame["machine"].isin(frame["machine"][own]) & (frame["target"] != "")
    return frame[~measured | place.isin(place[own])]


_NARROWER: tuple[tuple[str, set[str], Callable[[pd.DataFrame], pd.DataFrame]], ...] = (
    ("comparisons with baselines", {"threads", "backend", "comparable", "labels"}, ordinary),
    ("skipped cases", {"status"}, lambda frame: frame[frame["status"] != "skipped"]),
    (
        "what is not of the newest commit and environment of its machine",
        {*ORIGIN, "commit_date", "started_at", "python", "jax", "jaxlib"} - {"machine"},
        lambda frame: narrow(frame, (), latest=True),
    ),
    ("targets that were compiled for and not run", {"target"}, _run_here),
)
"""What a first look leaves out: in words, the columns that tell it, and how."""

LEFT_OUT = "left_out"
"""What `frame.attrs` calls that which a first look leaves out."""


def takes_frame(function: _Function) -> _Function:
    """Have a function on a frame refuse lists that became text, and name what a first look lacks.

    Where the frame is a first look, errors and empty answers say what it leaves out.
    """

    @functools.wraps(function)
    def taking(*args: Any, **named: Any) -> Any:
        frame = args[0] if args else named.get("frame")
        if not isinstance(frame, pd.DataFrame):
            return function(*args, **named)
        for name in LISTS:
            if name in frame.columns and len(frame) and not isinstance(frame[name].iloc[0], list):
                raise UsageError(
                    f"The column {name!r} holds {frame[name].iloc[0]!r}, expected a list. Take a "
                    "frame from harness.load(...): it also reads a .parquet file that "
                    "`harness export` wrote."
                )
        left_out = frame.attrs.get(LEFT_OUT)
        hint = f"The frame is a first look, without {left_out}: see harness.load(all=True)."
        try:
            answer = function(*args, **named)
        except UsageError as error:
            raise (UsageError(f"{error} {hint}") if left_out else error) from None
        if left_out and answer.empty:
            warnings.warn(hint, HarnessWarning, stacklevel=2)
        return answer

    return cast(_Function, taking)


def rows(frame: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    """Return the rows that are wanted.

    Raises:
        UsageError: nothing is like one of the filters, or no row has all that is asked for.
    """
    frame = narrow(frame, filters.select, latest=False)
    for column in ("stage", "target", "scenario"):
        asked = getattr(filters, column)
        if asked:  # comparisons have no stages
            names = frame[column].unique() if column in frame else ()
            frame = frame[frame[column].isin([find_name(name, names, column) for name in asked])]
    columns = {str(column).casefold(): column for column in frame.columns}
    coordinates = [*axis_columns(frame), *COORDINATES]
    chosen = frame
    for axis, texts in wanted_values(filters.case).items():
        column = columns[find_name(axis, coordinates, "axis").casefold()]
        frame = frame[[is_value(value, texts) for value in frame[column]]]
    if filters.case and frame.empty and not chosen.empty:
        raise UsageError(f"No row has {' and '.join(filters.case)}.")
    return frame


def here_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Return all rows, those of the machine at hand before the others."""
    elsewhere = (frame["machine"] != machine_name()).to_numpy()
    return frame.iloc[np.argsort(elsewhere, kind="stable")].reset_index(drop=True)


def of_one_machine(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the machine at hand, or all of them where none is of it."""
    own = frame[frame["machine"] == machine_name()]
    return frame if own.empty else own


def by_origin(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a heading and the rows for each origin, oldest first, the machine at hand's before all.

    Each machine's clock orders its own origins only.
    """
    groups = list(frame.groupby(ORIGIN, sort=False, dropna=False))
    here = machine_name()
    groups.sort(
        key=lambda group: (group[0][0] != here, str(group[0][0]), group[1]["started_at"].max())
    )
    for origin, part in groups:
        heading = origin_text(dict(zip(ORIGIN, map(str, origin), strict=True)))
        cases = part[~part["workload"].isin(INSTRUMENTS)]
        most = (part if cases.empty else cases)[["n_processes", "n_samples"]].max()
        count = f"{most['n_processes']} processes"
        if most["n_samples"] > 0 == most["n_processes"]:
            count = f"{most['n_samples']} samples"
        yield f"{heading} (n = {count})", part
