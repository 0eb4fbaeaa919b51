"""Budgets in a file: `[total]`, `[default]`, `[functions."train.py:loss"]`, in TOML.

In `pyproject.toml` the same tables stand under `[tool.harness.budget]`.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.profiles.budgets.limits import NAMES, ONE, limits_of, regex, unknown
from harness.profiles.budgets.use import Use, each, judge
from harness.profiles.functions import Counted, by_function
from harness.profiles.recorded import Recorded
from harness.records import json_file
from harness.records.files import replaced
from harness.records.project_tables import FILE, table_of
from harness.records.units import counted

HEAD = """\
# How much may be built; `harness profile check FOLDER --budget {name}` fails where it is more.
# Counts only: they are the same on every machine. max_compiles counts what was compiled and what
# was loaded from the persistent cache.
[total]
max_compiles = {compiles}
max_eager = {eager}

[default] # functions that are not named below
max_compiles = 1
"""

TABLES = ("total", "default", "functions")


@dataclass(frozen=True)
class FunctionLimits:
    """The limits of the functions that a name or regular expression means."""

    text: str
    expression: re.Pattern[str]
    limits: dict[str, float]

    @property
    def shown(self) -> str:
        """The head of the table, as it stands in the file."""
        return f'[functions."{self.text}"]'


@dataclass(frozen=True)
class BudgetFile:
    """What a budget file says."""

    path: Path
    total: dict[str, float]
    """Of everything together."""
    default: dict[str, float]
    """Of each function that has no table of its own."""
    functions: tuple[FunctionLimits, ...]

    def table_of(self, names: tuple[str, ...]) -> FunctionLimits | None:
        """Return the table of a function: the first that names it, else the first that matches."""
        naming = (table for table in self.functions if table.text in names)
        matching = (t for t in self.functions if any(map(t.expression.fullmatch, names)))
        return next(naming, None) or next(matching, None)


def read(path: Path | str) -> BudgetFile:
    """Read a budget file.

    Raises:
        UsageError: if it cannot be read, is not TOML, or says something that is not understood.
    """
    path = Path(path)
    tables = _parsed(path)
    if path.name == FILE:
        tables = table_of(tables, "budget", path)
        if not tables:
            raise UsageError(
                f"{path} has no [tool.harness.budget.total], [tool.harness.budget.default] or "
                "[tool.harness.budget.functions.NAME] table. "
                "docs/budgets.md says what stands in them."
            )
    for name, value in tables.items():
        if name in NAMES:
            raise UsageError(
                f"{path}: {name} stands outside any table. Put it under [total], for everything "
                "together, or [default], for each function."
            )
        if name not in TABLES:
            raise UsageError(unknown(str(path), name, TABLES))
        if not isinstance(value, Mapping):
            raise UsageError(f"{path}: {name} is {value!r}; expected a table [{name}].")
    functions = []
    for text, limits in tables.get("functions", {}).items():
        head = f'{path}: [functions."{text}"]'
        if not isinstance(limits, Mapping):
            raise UsageError(
                f"{head} is {limits!r}; expected a table of limits, which is named by a function, "
                'as in [functions."train.py:loss"].'
            )
        functions.append(FunctionLimits(text, regex(text, head), limits_of(limits, head, ONE)))
    found = BudgetFile(
        path,
        limits_of(tables.get("total", {}), f"{path}: [total]"),
        limits_of(tables.get("default", {}), f"{path}: [default]", ONE),
        tuple(functions),
    )
    if not (found.total or found.default or any(table.limits for table in functions)):
        raise UsageError(
            f"{path} limits nothing. Write for example [default] and below it max_compiles = 3; "
            "`harness profile check FOLDER --write FILE` writes a file from what was seen."
        )
    return found


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(json_file.data(path).decode())
    except FileNotFoundError:
        raise UsageError(
            f"There is no budget file {path}. "
            f"`harness profile check FOLDER --write {path}` writes one from what was seen."
        ) from None
    except json_file.DamagedError as error:
        raise UsageError(f"The budget file {path} cannot be read: {error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"The budget file {path} is not TOML: {error}.") from None


@dataclass(frozen=True)
class CheckedBudget:
    """What a profile used of each limit in a file."""

    file: BudgetFile
    profile: Recorded
    uses: tuple[Use, ...]
    """The furthest over first, then those that come closest."""
    stale: tuple[str, ...]
    """Tables that mean no function that was built, in words."""

    @property
    def over(self) -> list[Use]:
        """What was exceeded."""
        return [use for use in self.uses if use.over]

    def lines(self) -> list[str]:
        """Return what was exceeded, and why, line by line, with an empty one behind each limit."""
        texts = each(self.over, self.profile.cause_of)
        return [line for text in texts for line in f"{self.file.path}: {text}\n".split("\n")]

    def verdict(self) -> str:
        """Return in a line whether the profile keeps to it."""
        if not self.uses:
            return f"{self.file.path} limits nothing that was built."
        limits = counted(len(self.uses), "limit")
        if self.over:
            return f"Over the budget: {len(self.over)} of {limits}."
        return f"Within the budget: {limits}."


def checked(profile: Recorded, path: Path | str) -> CheckedBudget:
    """Hold a profile against a budget file.

    Raises:
        UsageError: if the file cannot be read or understood.
    """
    file = read(path)
    functions = by_function(profile.builds)
    uses = judge(file.total, functions, "[total]", profile.cause_of)
    used: set[str] = set()
    for one in functions:
        table = file.table_of(one.names())
        if table is not None:
            used.add(table.text)
        if one.eager and table is None:
            continue
        where, limits = (table.shown, table.limits) if table else ("[default]", file.default)
        uses += judge(limits, [one], where, profile.cause_of, one=True)

    def tightness(use: Use) -> tuple[bool, float]:
        share = use.used / use.allowed if use.allowed else float(use.used > 0) + 1.0
        return (not use.over, -share)

    stale = tuple(_stale(t, functions) for t in file.functions if t.text not in used)
    return CheckedBudget(file, profile, tuple(sorted(uses, key=tightness)), stale)


def _stale(table: FunctionLimits, functions: Sequence[Counted]) -> str:
    labels = [one.label for one in functions if not one.eager]
    near = difflib.get_close_matches(table.text, labels, 1)
    if not near:
        near = [text for text in labels if text.split(":")[-1] == table.text.split(":")[-1]][:1]
    mean = f" Did you mean {near[0]!r}?" if near else ""
    return f"{table.shown} means no function that was built.{mean}"


def write(profile: Recorded, path: Path, force: bool = False) -> int:
    """Write a budget file that a profile just keeps to; return how many functions it names.

    Raises:
        UsageError: if the file is there already, without `force`, or is a `pyproject.toml`.
        StoreError: if it cannot be written.
    """
    if path.name == FILE:
        raise UsageError(
            f"{path} is not written to. Write a file of its own, and put its tables under "
            "[tool.harness.budget] if you want them there."
        )
    if path.exists() and not force:
        raise UsageError(f"{path} is there already. Give another name, or --force to replace it.")
    functions = by_function(profile.builds)
    requests = {True: 0, False: 0}
    most: dict[str, tuple[int, int]] = {}
    for one in functions:
        requests[one.eager] += one.requests
        if not one.eager:  # of several with one name, such as lambdas, the one that was built most
            compiles, traces = most.get(one.label, (0, 0))
            most[one.label] = max(compiles, one.requests), max(traces, one.counts["traces"])
    text = HEAD.format(name=path.name, compiles=requests[False], eager=requests[True])
    for label, (compiles, traces) in sorted(most.items()):
        text += f"\n[functions.{_quoted(label)}]\n"
        text += f"max_compiles = {compiles}\nmax_traces = {traces}\n"
    with replaced(path, remedy="Give another name.") as handle:
        handle.write(text)
    return len(most)


def _quoted(label: str) -> str:
    try:
        re.compile(label)
    except re.error:
        label = re.escape(label)
    return json.dumps(label, ensure_ascii=False).replace("\x7f", "\\u007F")
