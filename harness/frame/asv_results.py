"""Rows from asv's own result files, for what no record covers: foreign trees and old ones.

Only asv's results format 2 (asv 0.5 and later) is read. asv keeps neither error texts nor versions
of packages nor evidence, so these rows say less than those from records; `low` and `high` are its
99 % interval.
"""

from __future__ import annotations

import ast
import functools
import itertools
import json
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.baselines.registry import REFERENCE
from harness.frame.columns import AXES, COLUMNS, LISTS, NUMBER, to_moment
from harness.frame.frame import PLACE, stage_order, to_frame
from harness.program import facts
from harness.program.facts import TOTALS
from harness.records.environment import NIGHT, recorded_env_name, told_apart
from harness.records.schema import Problems
from harness.stages.registry import ALONE, ALONE_METRICS, DERIVED_METRICS, STAGES, asv_metrics, used

FORMAT = 2
"""Version of asv's result files and of its benchmarks.json."""

LEVEL = 0.99
"""Confidence of asv's own intervals."""

MAX_BYTES = 256 * 2**20
"""A larger file is counted as unreadable: it would have to be held in memory whole."""

MAX_CASES = 1_000_000
"""A benchmark with more cases is malformed: asv lists axes, whose product may be of any size."""

MAX_LITERAL = 10_000
"""Characters of the longest parameter that is looked at as a Python literal."""

FACTS = "facts"
"""The metric of ours that has a fact of the program as its first parameter."""

Origin = tuple[str, str, str, str, str]
"""Machine, commit, workload, environment and XLA_FLAGS, for which there are records."""

_Row = dict[str, Any]


class _Malformed(Exception):
    """Not what asv writes; the text says what."""


def read(files: Sequence[Path], covered: Collection[Origin], problems: Problems) -> pd.DataFrame:
    """Return the rows of result files that are not covered by records; no file is fatal."""
    rows: list[_Row] = []
    about_machines: dict[Path, Mapping[str, Any]] = {}
    for path in files:
        tree = path.parent.parent
        if tree not in about_machines:
            about = tree / "benchmarks.json"
            about_machines[tree] = (_json(about, problems) if about.exists() else None) or {}
        rows += _file_rows(path, about_machines[tree], covered, problems)
    # asv, unlike a record, knows the order in which cases stand.
    order = ("machine", "commit_date", "commit", *PLACE, "workload", "position")
    rows.sort(key=lambda row: (*(row[name] for name in order), stage_order(row["stage"])))
    columns = {column: [row[column] for row in rows] for column in COLUMNS}
    return to_frame(columns, columns[AXES], np.arange(len(rows)))


def _json(path: Path, problems: Problems) -> dict[str, Any] | None:
    """Return an asv file of our format, or None after counting what is wrong with it."""
    try:
        size = os.stat(path).st_size
        if size > MAX_BYTES:
            raise _Malformed(f"larger than {MAX_BYTES // 2**20} MiB")
        # The standard library's reader takes the bare NaN and Infinity that asv writes.
        text = path.read_bytes().decode()
        document = json.loads(text)
        if "\\ud" in text.lower():  # half a surrogate pair is no text
            plain = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
            document = json.loads(plain)
        if not isinstance(document, dict) or "version" not in document:
            raise _Malformed("not a file of asv's")
    except (OSError, ValueError, RecursionError, _Malformed) as error:
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        malformed = isinstance(error, _Malformed | OSError)
        problems.count("unreadable", path, text if malformed else "not whole JSON")
        return None
    if document["version"] == 1:
        problems.count("old_asv", path, "asv's format 1")
        return None
    if document["version"] != FORMAT:
        problems.count("other_schema", path, f"another version of asv's format than {FORMAT}")
        return None
    return document


def _file_rows(
    path: Path, benchmarks: Mapping[str, Any], covered: Collection[Origin], problems: Problems
) -> list[_Row]:
    document = _json(path, problems)
    if document is None:
        return []
    columns, results = _texts(document.get("result_columns")), document.get("results")
    if columns is None or not isinstance(results, dict):
        problems.count("unreadable", path, "no results in it")
        return []
    shared = _shared(path, document)
    rows: list[_Row] = []
    for name, packed in results.items():
        try:
            rows += _benchmark_rows(name, packed, columns, benchmarks.get(name), shared, covered)
        except _Malformed as error:
            problems.count("corrupt", path, str(error))
    return rows


def _shared(path: Path, document: Mapping[str, Any]) -> _Row:
    """Return the columns that are the same for a whole file."""
    params, requirements = _mapping(document.get("params")), _mapping(document.get("requirements"))
    variables, env = _mapping(document.get("env_vars")), _text(document.get("env_name"))
    # Of an existing environment asv stores the path of its interpreter.
    pythons = _text(params.get("python")), _text(document.get("python"))
    return {
        **{name: math.nan if kind == NUMBER else "" for name, kind in COLUMNS.items()},
        **{name: [] for name in LISTS},
        "machine": _text(params.get("machine")) or path.resolve().parent.name,
        "commit": _text(document.get("commit_hash")),
        "commit_date": to_moment(document.get("date")),
        # Without its variables, which have columns of their own, wherever asv stored them.
        "env": recorded_env_name(env, variables) if variables else env,
        **told_apart({name: _text(value) for name, value in variables.items()}),
        "night": _text(variables.get(NIGHT)),
        "python": next((one for one in pythons if not re.search(r"[/\\]", one)), ""),
        "jax": _text(requirements.get("jax")),
        "jaxlib": _text(requirements.get("jaxlib")),
    }


def _identify(name: str, about: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return workload, scenario, stage and unit of a benchmark; no scenario if it is not ours.

    The unit is what stands in for a description that is lost.
    """
    workload, _, function = name.rpartition(".")
    metric = function.removeprefix("track_")
    if workload and metric != function:
        if metric in asv_metrics():
            return workload, *asv_metrics()[metric], "seconds"
        if metric in STAGES:
            return workload, "off", metric, "seconds"
        if metric in TOTALS:
            return workload, "off", metric, facts.FACTS[metric].unit
        if metric == FACTS:
            return workload, "off", FACTS, ""
        if metric in DERIVED_METRICS:
            scenario, unit = DERIVED_METRICS[metric]
            return workload, scenario, metric, unit
    begin = re.match(r"PeakMem|Timeraw|Time|Mem|[^_]+", function)
    kind = _text(about.get("type")) or (begin[0].lower() if begin else "")
    return name, "", *_KINDS.get(kind, (kind, ""))


_KINDS = {
    "time": ("time", "seconds"),
    "timeraw": ("time", "seconds"),
    "mem": ("memory", "bytes"),
    "memory": ("memory", "bytes"),
    "peakmem": ("peakmemory", "bytes"),
    "peakmemory": ("peakmemory", "bytes"),
}
"""By type, or by how asv has its name begin, the type and unit of a benchmark that is no workload.
What others track has the unit that benchmarks.json says."""


def _benchmark_rows(
    name: str,
    packed: object,
    columns: Sequence[str],
    about: object,
    shared: _Row,
    covered: Collection[Origin],
) -> Iterator[_Row]:
    about = _mapping(about)
    workload, scenario, stage, unit = _identify(name, about)
    ours = scenario != ""
    place, env = (shared["machine"], shared["commit"], workload), shared["env"]
    if (*place, env, shared["xla_flags"]) in covered:
        return
    # Without our plugin, asv names an environment that it did not make by the path of its Python.
    if re.match(r"existing-py\D", env) and any(
        one[:3] == place and one[3].startswith("existing-py") for one in covered
    ):
        return
    if not isinstance(packed, list) or len(packed) > len(columns):
        raise _Malformed(f"benchmark {name} is not what asv writes")
    cells = dict(itertools.zip_longest(columns, packed))
    version = _text(cells.get("version"))
    if ours and name.rpartition(".track_")[2] in ALONE_METRICS:
        stage = stage if version.endswith(ALONE) else used(stage)
        version = version.removesuffix(ALONE)
    base, _, number = version.partition("+")
    version, method = (base, int(number)) if ours and number.isdecimal() else (version, 1)
    points = _points(name, cells.get("params"))
    names = _texts(about.get("param_names")) or []
    has_facts = ours and stage == FACTS
    value_of = {key: _column(name, cells, key, len(points)) for key in _PER_CASE}
    for position, point in enumerate(points):
        if has_facts:
            stage = str(_literal(point[0]))
            unit = facts.FACTS[stage].unit if stage in facts.FACTS else ""
        axes = {
            axis or f"param{number + 1}": _literal(text)
            for number, (axis, text) in enumerate(itertools.zip_longest(names[: len(point)], point))
        }
        if has_facts:
            axes.pop(next(iter(axes)))
        cell = {key: values[position] for key, values in value_of.items()}
        samples = cell["samples"] if isinstance(cell["samples"], list) else []
        outcome = _outcome(cell["result"])
        low, high = _number(cell["stats_ci_99_a"]), _number(cell["stats_ci_99_b"])
        count = _number(cell["stats_repeat"])
        # Before asv 0.3 the number of samples of a time was not stored.
        taken = int(count) if 1 <= count < 2**31 else int(ours or stage != "time")
        if outcome["status"] != "ok":
            taken = 0
        yield {
            **shared,
            "started_at": to_moment(cells.get("started_at")),
            "workload": workload,
            "version": version,
            "method": method,
            "stage": stage,
            "unit": _text(about.get("unit")) or unit,
            "backend": REFERENCE if ours else "",
            "precision": _text(axes.pop("precision", "")) if ours else "",
            "scenario": scenario,
            "transform": _text(axes.pop("transform", "")),
            "target": _text(axes.pop("target", "")),
            **outcome,
            "low": low,
            "high": high,
            "interval_level": math.nan if math.isnan(low) or math.isnan(high) else LEVEL,
            "n_samples": taken,
            # One sample is one process for ours. A foreign time pools the samples of its rounds,
            # and asv does not store how many were run: `--quick` and `-a rounds=` change that.
            "n_processes": taken if ours or taken == 1 else 0,
            "samples": [_number(sample) for sample in samples],
            "axes": axes,
            "position": position,
        }


_PER_CASE = ("result", "samples", "stats_ci_99_a", "stats_ci_99_b", "stats_repeat")
"""Columns of asv's that hold one value per case, or null if all of them are null."""


def _points(name: str, params: object) -> list[tuple[str, ...]]:
    """Return the parameters of each case, the last fastest; one empty tuple if there are none."""
    lists = [_texts(values) for values in params] if isinstance(params, list) else []
    axes = [values for values in lists if values is not None]
    if len(axes) < len(lists) or not isinstance(params, list | None):
        raise _Malformed(f"benchmark {name} has parameters that are not lists of text")
    if math.prod(map(len, axes)) > MAX_CASES:
        raise _Malformed(f"benchmark {name} claims more than {MAX_CASES} cases")
    return list(itertools.product(*axes))


def _column(name: str, cells: Mapping[str, Any], key: str, length: int) -> list[Any]:
    values = cells.get(key)
    if values is None:
        return [None] * length
    if not isinstance(values, list) or len(values) != length:
        raise _Malformed(f"benchmark {name} has not one {key} for each case")
    return values


def _outcome(result: object) -> _Row:
    """Return value, status and reason: asv writes null for a failure and NaN for a skip."""
    if result is None:
        return {
            "value": math.nan,
            "status": "failed",
            "reason": "asv does not say why; asv run --show-stderr does",
        }
    value = _number(result)
    if not math.isnan(value):
        return {"value": value, "status": "ok", "reason": ""}
    reason = "the result is no number"
    if isinstance(result, float):
        reason = "skipped, or not selected" if math.isnan(result) else "the result is infinite"
    return {"value": math.nan, "status": "skipped", "reason": reason}


def _number(value: object) -> float:
    """Return a finite float, else NaN: asv writes infinite intervals for few samples."""
    if not isinstance(value, int | float):
        return math.nan
    try:
        number = float(value)
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


@functools.lru_cache(maxsize=65_536)
def _literal(text: str) -> Any:
    """Return the value that asv wrote the repr of; what is no plain literal stays text."""
    try:
        value = ast.literal_eval(text) if len(text) <= MAX_LITERAL else text
        hash(value)  # a list or a dict could not be grouped by
        str(value).encode()  # half a surrogate pair is no text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value


def _texts(value: object) -> list[str] | None:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
