"""How the cache commands print: JSON, lines of text, sizes and times."""

from __future__ import annotations

import json
from typing import Any

from harness.cli.output import print_page


def print_json(parts: dict[str, Any]) -> None:
    """Print structs that may hold any file name as one JSON object."""
    import msgspec

    # json escapes file names that are not UTF-8, which msgspec refuses.
    print(json.dumps({"schema": 1, **msgspec.to_builtins(parts)}))


def print_report(report: Any) -> None:
    """Print one struct as JSON that people can read."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())


def print_lines(lines: list[str]) -> None:
    """Print lines as they are."""
    print_page(lines)
