"""Bring a results tree of before 0.2.0 into today's form.

    python -m harness.asv.conversion results

In asv's files, the versions of jax and jaxlib stand among the requirements, so that asv keeps
releases apart; a machine has no cells of targets of which it has no value; facts of programs are
left to the records that hold them, equal, or else are in the one benchmark `track_facts`. Error
rates and nights get names that asv does not read.

No value is lost: each is found again in what is about to be written or in records, else nothing is
written. What is in today's form already stays as it is.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from asv.util import UserError, load_json, write_json

from harness.asv.metrics import FACT_METRICS, METRICS
from harness.errors import ExitCode, HarnessError, StoreError, UsageError
from harness.frame.asv_results import FORMAT
from harness.records.files import OWN
from harness.records.printable import printable
from harness.records.schema import case_of
from harness.records.store import Store

Cells = dict[str, Any]
"""A benchmark's columns by name; those of asv that hold one value per case as lists, or None."""

Value = tuple[str, tuple[str, ...], str, float]
"""Workload, parameters, metric, and a value that asv has of them."""

_WHOLE = ("params", "version", "started_at", "duration", "profile")
"""Columns that hold one value for all cases."""


def convert(results: Path) -> Iterator[str]:
    """Convert a tree; yield, for each file that changes, what became of its values.

    Raises:
        UsageError: it is no results tree.
        StoreError: a file cannot be read, or would lose a value; asv's files are as they were.
    """
    about = _read(results / "benchmarks.json")
    if not about:
        raise UsageError(f"{results} holds no benchmarks.json: expected a folder that asv writes.")
    names = {key: one.get("param_names", []) for key, one in about.items() if key != "version"}
    changed: dict[Path, tuple[dict[str, Any], str]] = {}
    shown: dict[str, dict[str, list[list[str]]]] = {}
    for file in sorted(results.glob("*/*.json")):
        if file.name == "machine.json":
            continue
        found = _read(file)
        if found.get("version") != FORMAT:
            raise StoreError(f"{file} is not of asv's format {FORMAT}; `asv update` makes it so.")
        new, said = _converted(file, found, names)
        for name, cells in _unpacked(new).items():
            shown.setdefault(name, {})[str(file)] = cells["params"]
        if new != found:
            changed[file] = new, said
    listed = _listed(about, shown)
    for file, (new, said) in changed.items():
        write_json(str(file), new, FORMAT, compact=True)
        yield f"{file}: {said}"
    if listed != about:
        write_json(str(results / "benchmarks.json"), listed, FORMAT)
        yield f"{results / 'benchmarks.json'}: {len(about) - 1} benchmarks, now {len(listed) - 1}"
    for old in sorted([*results.glob("*/aa/*.json"), *results.glob("*/nights/**/*.json")]):
        if not (new_name := old.with_suffix(OWN)).exists():
            old.rename(new_name)
            yield f"{old}: now {new_name.name}"


def _converted(
    file: Path, found: dict[str, Any], names: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Any], str]:
    benchmarks = _unpacked(found)
    before = Counter(_values(benchmarks))
    records = Store(file.parent / "records" / f"{file.stem}.jsonl").read()
    held = {
        (record.workload, case_of(record).id, fact, getattr(record.facts, fact))
        for record in records
        for fact in FACT_METRICS
        if record.facts
    }
    workloads: dict[str, dict[str, Cells]] = {}
    new: dict[str, Cells] = {}
    for name, cells in benchmarks.items():
        workload, _, metric = name.rpartition(".track_")
        if workload and metric in METRICS:
            workloads.setdefault(workload, {})[metric] = cells
        else:
            new[name] = cells
    left = 0
    for workload, metrics in workloads.items():
        facts = {name: metrics.pop(name) for name in FACT_METRICS if name in metrics}
        targets = _targets_with_values([*metrics.values(), *facts.values()])
        if facts:
            axes = names.get(f"{workload}.track_{next(iter(facts))}", [])
            named = {f"{workload}.track_{name}": cells for name, cells in facts.items()}
            own = list(_values(named))
            told = {
                (workload, ", ".join(map("=".join, zip(axes, point, strict=False))), fact, value)
                for _, point, fact, value in own
            }
            if told <= held:
                left += len(own)
                before.subtract(own)
            else:
                metrics["facts"] = _joined(facts)
        for metric, cells in metrics.items():
            if kept := _of_targets(cells, targets):
                new[f"{workload}.track_{metric}"] = kept
    missing = +before - Counter(_values(new))
    if missing:
        raise StoreError(f"{file} would lose {len(missing)} values, such as {next(iter(missing))}.")
    versions = {}
    if records:
        versions = {"jax": records[0].jax, "jaxlib": records[0].jaxlib}
    elif release := re.match(r"existing-py[\d.]+-jax([^-]+)", found["env_name"]):
        versions = {"jax": release[1]}
    columns = found["result_columns"]
    results = {name: _packed(cells, columns) for name, cells in new.items()}
    said = f"{sum(Counter(_values(new)).values())} values kept, {left} facts left to the records"
    return {
        **found,
        "params": {**found["params"], **versions},
        "requirements": {**found["requirements"], **versions},
        "results": {name: results[name] for name in sorted(results)},
    }, said


# Cells


def _unpacked(found: Mapping[str, Any]) -> dict[str, Cells]:
    columns = found["result_columns"]
    return {
        name: {"params": [], **dict(itertools.zip_longest(columns, packed))}
        for name, packed in found["results"].items()
    }


def _packed(cells: Cells, columns: Sequence[str]) -> list[Any]:
    packed = [cells[column] for column in columns]
    while packed and packed[-1] is None:
        packed.pop()
    return packed


def _points(cells: Cells) -> list[tuple[str, ...]]:
    return list(itertools.product(*cells["params"]))


def _values(benchmarks: Mapping[str, Cells]) -> Iterator[Value]:
    """Yield every number, one of all facts as one of its own metric."""
    for name, cells in benchmarks.items():
        workload, _, metric = name.rpartition(".track_")
        for point, value in zip(_points(cells), cells["result"] or (), strict=False):
            if isinstance(value, int | float) and not math.isnan(value):
                if metric == "facts":
                    yield workload, point[1:], point[0].strip("'"), float(value)
                else:
                    yield workload or name, point, metric, float(value)


def _targets_with_values(benchmarks: Iterable[Cells]) -> set[str]:
    """Return the targets of which anything is known, a failure included."""
    return {
        point[-1]
        for cells in benchmarks
        for point, value in zip(
            _points(cells), cells["result"] or itertools.repeat(None), strict=False
        )
        if point and not (isinstance(value, float) and math.isnan(value))
    }


def _of_targets(cells: Cells, targets: set[str]) -> Cells | None:
    if not cells["params"]:
        return cells
    *axes, own = cells["params"]
    keep = [point[-1] in targets for point in _points(cells)]
    if not any(keep):
        return None
    taken = {
        name: list(itertools.compress(column, keep))
        for name, column in cells.items()
        if name not in _WHOLE and isinstance(column, list)
    }
    return {**cells, **taken, "params": [*axes, [name for name in own if name in targets]]}


def _joined(facts: Mapping[str, Cells]) -> Cells:
    """Return the one benchmark of several facts, whose first parameter is the fact."""
    first = next(iter(facts.values()))
    joined: Cells = {"params": [[repr(name) for name in facts], *first["params"]]}
    joined |= {name: first[name] for name in ("version", "started_at")}
    joined["duration"] = sum(cells["duration"] or 0 for cells in facts.values())
    joined["profile"] = None
    for column in first.keys() - {*_WHOLE}:
        each = [cells[column] or [None] * len(_points(cells)) for cells in facts.values()]
        flat = list(itertools.chain.from_iterable(each))
        joined[column] = flat if any(one is not None for one in flat) else None
    return joined


def _listed(
    about: dict[str, Any], shown: Mapping[str, Mapping[str, list[list[str]]]]
) -> dict[str, Any]:
    """Return asv's list of benchmarks with the targets that any file has of them."""
    listed: dict[str, Any] = {}
    for name, one in about.items():
        workload, _, metric = name.rpartition(".track_")
        if metric in FACT_METRICS:
            name = f"{workload}.track_facts"
            if name not in shown or name in listed:
                continue
            one = {**one, "name": name, "unit": "", "param_names": ["fact", *one["param_names"]]}
            one["params"] = [next(iter(shown[name].values()))[0], *one["params"]]
        if name in shown and (metric in METRICS or metric == "facts") and one["params"]:
            *axes, own = one["params"]
            there = {target for params in shown[name].values() for target in params[-1]}
            one = {**one, "params": [*axes, [target for target in own if target in there]]}
        listed[name] = one
    return listed


def _read(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = load_json(str(file))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, UserError) as error:
        raise StoreError(f"{file} cannot be read: {error}. Nothing is changed.") from error
    return found


def main(arguments: Sequence[str]) -> int:
    """Convert the tree that is named; return the exit code."""
    try:
        if len(arguments) != 1:
            raise UsageError("expected one folder: python -m harness.asv.conversion results")
        for line in convert(Path(arguments[0])):
            print(printable(line))
    except HarnessError as error:
        print(f"harness: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    return ExitCode.FINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
