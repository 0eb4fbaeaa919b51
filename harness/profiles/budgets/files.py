"""Budgets in a file: `[total]`, `[default]`, `[functions."train.py:loss"]`, in TOML.

In `pyproject.toml` the same tables stand under `[tool.harness.budget]`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.profiles.budgets.limits import (
    NAMES,
    WHOLE_ONLY,
    Limits,
    limits_of,
    regex,
    unknown,
)

PROJECT = "pyproject.toml"
TABLES = ("total", "default", "functions")
ONE = tuple(name for name in NAMES if name not in WHOLE_ONLY)
"""What can be limited of one function."""


@dataclass(frozen=True)
class Table:
    """The limits of the functions that a name or regular expression means."""

    text: str
    expression: re.Pattern[str]
    limits: Limits

    @property
    def shown(self) -> str:
        """The head of the table, as it stands in the file."""
        return f'[functions."{self.text}"]'


@dataclass(frozen=True)
class BudgetFile:
    """What a budget file says."""

    path: Path
    total: Limits = field(default_factory=Limits)
    """Of everything together."""
    default: Limits = field(default_factory=Limits)
    """Of each function that has no table of its own."""
    functions: tuple[Table, ...] = ()

    def table_of(self, names: tuple[str, ...]) -> Table | None:
        """Return the table of a function: the first that names it, else the first that matches."""
        for table in self.functions:
            if table.text in names:
                return table
        for table in self.functions:
            if any(table.expression.fullmatch(name) for name in names):
                return table
        return None


def read(path: Path | str) -> BudgetFile:
    """Read a budget file.

    Raises:
        UsageError: if it cannot be read, is not TOML, or says something that is not understood.
    """
    path = Path(path)
    tables = _parsed(path)
    if path.name == PROJECT:
        for name in ("tool", "harness", "budget"):
            found = tables.get(name)
            if not isinstance(found, Mapping):
                raise UsageError(
                    f"{path} has no [tool.harness.budget.total], [tool.harness.budget.default] or "
                    "[tool.harness.budget.functions.NAME] table. "
                    "docs/budgets.md says what stands in them."
                )
            tables = found
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
            if text in NAMES:
                raise UsageError(
                    f"{path}: {text} stands in [functions] itself. Put it under "
                    '[functions."train.py:loss"], or under [default] for every function.'
                )
            raise UsageError(f"{head} is {limits!r}; expected a table of limits.")
        functions.append(Table(text, regex(text, head), limits_of(limits, head, ONE)))
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
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"There is no budget file {path}. "
            f"`harness profile check FOLDER --write {path}` writes one from what was seen."
        ) from None
    except OSError as error:
        raise UsageError(f"The budget file {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The budget file {path} is not TOML: {error}.") from None
