"""The columns of the frame: the name, kind, unit and meaning of each, and how values stand there.

The table in docs/frame.md is :func:`table`, which a test compares.

A column of a file has one type, an axis may have several (`8`, `"8"`, `(8, 8)`, `True`): so the
axes of a case are one JSON text too, in which each value keeps its own. JSON's lists stand for
tuples, since no axis is a list. What JSON does not know is an object with one member:
`{"float": "inf"}`, or `{"literal": "b'x'"}` for Python's other literals.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from harness.program.facts import FACTS

TEXT = "text"
MOMENT = "moment"
NUMBER = "number"
COUNT = "count"
NUMBERS = "numbers"
TEXTS = "texts"
JSON = "json"

DTYPES = {
    TEXT: "str",
    MOMENT: "datetime64[ms, UTC]",
    NUMBER: "float64",
    COUNT: "int64",
    NUMBERS: "object",
    TEXTS: "object",
    JSON: "object",
}
"""What pandas calls the type of each kind. Numbers are NaN where nobody knows them."""


class Field(NamedTuple):
    """One column of the frame."""

    name: str
    kind: str
    unit: str
    """Of its numbers; "" where they have none, or where the column `unit` says it."""
    meaning: str
    """In Markdown, with links as from docs/."""


_LEFT_OUT = "NaN in old records and other stages"

SCHEMA = (
    Field("machine", TEXT, "", "the name of the machine in the results tree"),
    Field("commit", TEXT, "", "what was measured; empty without git"),
    Field("commit_date", MOMENT, "", "when it was committed"),
    Field("started_at", MOMENT, "", "when the latest process of the row began"),
    Field("env", TEXT, "", "the environment: asv's name, or `existing-py3.11-jax0.10.2`"),
    Field("xla_flags", TEXT, "", "`XLA_FLAGS`; empty where it was not set"),
    Field(
        *("env_vars", TEXT, ""),
        "other variables that tell environments apart, `NAME=value`, joined by `, `: flags, and "
        "what asv's `env` and `env_nobuild` set; none that the harness sets itself",
    ),
    Field("python", TEXT, "", "its version"),
    Field("jax", TEXT, "", "its version"),
    Field("jaxlib", TEXT, "", "its version"),
    Field("workload", TEXT, "", "`module.Class`"),
    Field(*("version", TEXT, ""), "changes with the workload's own source and with the method"),
    Field("target", TEXT, "", "what was compiled for, see the [glossary](glossary.md)"),
    Field("transform", TEXT, "", "`forward`, `gradient`, … see the glossary"),
    Field(
        "scenario",
        TEXT,
        "",
        "`off`, `cold`, `warm`, `default`, `exported`, `executable`: see the glossary",
    ),
    Field("stage", TEXT, "", "`trace`, `lower`, `compile`, `execute`, … see the glossary"),
    Field(
        *("unit", TEXT, ""),
        "of `value`: `seconds`; of rows from asv's own files also `bytes`, `count`, `flops`, "
        "`ratio`",
    ),
    Field(
        *("value", NUMBER, ""),
        "median over processes of each process's one value; of `execute`, `dispatch` and "
        "`compute` that is the least call",
    ),
    Field(
        *("calibrated", NUMBER, "ratio"),
        "median over processes of value / reference of the same process",
    ),
    Field(
        *("low", NUMBER, ""),
        "of the interval of `value`; NaN under 6 processes; of asv's own files, what asv stored",
    ),
    Field("high", NUMBER, "", "its other end"),
    Field(
        *("interval_level", NUMBER, "ratio"),
        "confidence of that interval: 0.95, of asv's own files 0.99; NaN where there is none",
    ),
    Field(
        *("least", NUMBER, "seconds"),
        f"of `execute` and `dispatch`: the least call of a process, median over processes; "
        f"{_LEFT_OUT}",
    ),
    Field("p10", NUMBER, "seconds", "what 10 % of its calls do not exceed, the same way"),
    Field("p50", NUMBER, "seconds", "50 %: this is what tables show"),
    Field("p90", NUMBER, "seconds", "90 %"),
    Field("p50_low", NUMBER, "seconds", "of the 95 % interval of `p50`; NaN under 6 processes"),
    Field("p50_high", NUMBER, "seconds", "its other end"),
    Field("n_calls", NUMBER, "count", "calls of all processes that these rest on"),
    Field(
        *("programs", NUMBER, "count"),
        "whole programs that were built inside of the stage, median over processes; NaN where "
        "there were none",
    ),
    Field("programs_s", NUMBER, "seconds", "of the stage, that building them took"),
    Field(
        *("collected_s", NUMBER, "seconds"),
        "of `first_call`, that Python's garbage collector took, median over processes; NaN where "
        "it was off",
    ),
    Field(
        *("n_samples", COUNT, "count"),
        "how many samples `value` is the median of: one per process; of asv's own files as many as "
        "asv pooled, 0 where it did not store that",
    ),
    Field(
        *("n_processes", COUNT, "count"),
        "how many processes the row rests on; 0 where asv pooled samples of several rounds, of "
        "which it does not store how many were run",
    ),
    Field("samples", NUMBERS, "", "each process's one value, in the unit of `value`"),
    Field("status", TEXT, "", "`ok`, `failed`, `skipped`, `refused`"),
    Field("reason", TEXT, "", "why it is not `ok`, or what an `ok` row leaves out"),
    Field("fingerprint", TEXT, "", "hash of the optimised HLO without metadata"),
    Field("inputs", TEXT, "", "digest of the values of its inputs; empty where not known"),
    Field("code", TEXT, "", "digest of the code that its processes ran; empty where not known"),
    Field("effort", TEXT, "", "`quick`, `default`, `thorough`, `6x1`, …"),
    Field(
        *("protocol", TEXT, ""),
        "what each process did, such as `2 passes x least calls of 4 blocks`; rows of unlike "
        "protocols are not compared",
    ),
    Field(
        *("method", NUMBER, ""),
        "how the stage was taken, a number that rises where its times mean something else; rows of "
        "unlike methods are not compared",
    ),
    Field("dirty", TEXT, "", "a digest of uncommitted changes; empty for a clean tree"),
    Field("night", TEXT, "", "the night that it was measured in; empty outside of nights"),
    Field("environment", JSON, "", "versions, flags, device and host"),
    Field(
        *("calibrated_samples", NUMBERS, "ratio"),
        "each process's value / reference, in the order of `samples`",
    ),
    Field(
        *("cpu_samples", NUMBERS, "seconds"),
        "CPU time of each process, all of its threads: the least over its passes, of `execute` and "
        "`compute` of a block's mean call; in the order of `samples`; empty where not known",
    ),
    Field(
        *("p90_samples", NUMBERS, "seconds"),
        "of `execute` and `dispatch`: what 90 % of the calls of each process do not exceed, in "
        "the order of `samples`; empty where not known",
    ),
    Field(
        *("waiting_samples", NUMBERS, "seconds"),
        "of `trace`, `lower` and `compile`: wall time beyond CPU time, the least over passes, in "
        "the order of `samples`; below 0 where several threads computed; empty where not known",
    ),
    Field(
        *("others_cores", NUMBERS, "cores"),
        "how many cores others kept busy while each process measured, in the order of `samples`; "
        "empty where not known",
    ),
    Field(
        *("load_averages", NUMBERS, ""),
        "the load average of the minute before each process, the same way",
    ),
    Field(
        *("processes", TEXTS, ""),
        'which process each of `samples` is of, by an id that workloads share; `""` in old records',
    ),
    Field(
        *("entry_bytes", NUMBER, "bytes"),
        "what the persistent cache wrote for the program; NaN where it wrote nothing",
    ),
    Field("precision", TEXT, "", "`ieee`, `tf32`, `bf16`, where the workload sweeps it"),
    Field(
        *("backend", TEXT, ""),
        "who computed: `xla`, but for [comparisons](#comparisons-with-baselines)",
    ),
    Field("threads", TEXT, "", "of comparisons: `one` or `all`; empty in ordinary rows"),
    Field("comparable", TEXT, "", "of comparisons: `yes` or `no`"),
    Field("labels", TEXT, "", "of comparisons: what the reader must know"),
    Field(
        *("static", TEXT, ""),
        "the static axes of the workload, joined by `, `; empty in records that do not name them",
    ),
    Field(
        *("n_forked", NUMBER, "count"),
        "how many of the processes were [forked](method.md#forked-processes); NaN in asv's own "
        "files",
    ),
    *(Field(fact.name, NUMBER, fact.unit, fact.meaning) for fact in FACTS.values()),
    Field("axes", JSON, "", "the axes of the row, with their types"),
)
"""Every column that every frame has, in order; those of axes follow."""

COLUMNS = {column.name: column.kind for column in SCHEMA}
"""The kind of each column by its name."""

AXES = "axes"
"""The column with the axes of each row as JSON, and so with the names of the columns of axes."""

LISTS = tuple(name for name, kind in COLUMNS.items() if kind in (NUMBERS, TEXTS))
"""Columns that hold a list in each row."""


def objects(values: Iterable[Any]) -> np.ndarray[Any, Any]:
    """Return a column of Python objects; tuples and lists stay whole."""
    return np.fromiter(values, dtype=object)


def order_of(value: Any) -> tuple[int, Any]:
    """Return what to sort the values of an axis by: numbers, text, tuples, others."""
    if isinstance(value, int | float):
        # NaN would make the order depend on where one begins.
        return (0, value) if value == value else (3, "nan")
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, tuple):
        return (2, tuple(map(order_of, value)))
    return (3, repr(value))


NO_MOMENT = np.iinfo(np.int64).min
"""Milliseconds that stand for no date: NumPy's NaT."""


def to_moment(milliseconds: object) -> int:
    """Return milliseconds since 1970 as a frame can hold them, or :data:`NO_MOMENT`."""
    limit = 8.64e15  # the last moment of JavaScript's Date, in which asv counts
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return NO_MOMENT
    return int(milliseconds) if abs(milliseconds) <= limit else NO_MOMENT


def is_missing(value: object) -> bool:
    """Return whether a cell of an axis says that its workload lacks the axis."""
    return isinstance(value, float) and value != value


def encode_axes(axes: Mapping[str, Any]) -> str:
    """Return axes as the text of a JSON object; axes that are NaN, which a case lacks, are out."""
    return json.dumps(
        {name: _plain(value) for name, value in axes.items() if not is_missing(value)},
        ensure_ascii=False,
        allow_nan=False,
    )


def decode_axes(text: str) -> dict[str, Any]:
    """Return the axes that :func:`encode_axes` made a text of."""
    return {name: _value(found) for name, found in json.loads(text).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    try:
        is_literal = bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        is_literal = False
    return {"literal": repr(value)} if is_literal else str(value)


def _value(found: Any) -> Any:
    if isinstance(found, list):
        return tuple(map(_value, found))
    if isinstance(found, dict):
        return float(found["float"]) if "float" in found else ast.literal_eval(found["literal"])
    return found


def table() -> str:
    """Return the columns as a Markdown table."""
    lines = ["| column | dtype | unit | meaning |", "|---|---|---|---|"]
    for name, kind, unit, meaning in SCHEMA:
        held = {NUMBERS: "list: ", TEXTS: "list: ", JSON: "JSON text: "}
        said = held.get(kind, "") + meaning
        lines.append(f"| `{name}` | {DTYPES[kind]} | {unit} | {said} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
