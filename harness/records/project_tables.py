"""What a project says of the harness: the tables below `[tool.harness]` of its pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import UsageError, nearest

FILE = "pyproject.toml"

TABLES = ("thresholds", "profile")
"""All that there are; `harness.init.schema` says what stands in them."""


def project_table(project: Path, name: str) -> Mapping[str, Any]:
    """Return the table `[tool.harness.NAME]` of a project; an empty one where it has none.

    Raises:
        UsageError: its pyproject.toml cannot be read, or as :func:`table_of`.
    """
    file = project / FILE
    try:
        whole = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # no TOML, or no UTF-8
        raise UsageError(f"{file} cannot be read: {error}.") from None
    return table_of(whole, name, file)


def table_of(table: Mapping[str, Any], name: str, file: Path) -> Mapping[str, Any]:
    """Return the table `[tool.harness.NAME]` of a pyproject.toml; an empty one where it has none.

    Raises:
        UsageError: it is no table, or another one below `[tool.harness]` is not known.
    """
    here = f"{file}: [tool.harness.{name}]"
    for part in ("tool", "harness", name):
        for other in table if part == name else ():
            if other not in TABLES:
                raise UsageError(
                    f"{file}: [tool.harness] has {other!r}, which is not known."
                    f"{nearest(other, TABLES)} There are: {', '.join(TABLES)}."
                )
        table = table.get(part, {})
        if not isinstance(table, Mapping):
            raise UsageError(f"{here}: {part} is {table!r}; expected a table.")
    return table
