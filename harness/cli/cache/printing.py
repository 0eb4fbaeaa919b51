"""How the cache commands print: JSON, lines of text, sizes and times."""

from __future__ import annotations

import json
from typing import Any


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
    from harness.cli.terminal import console

    for line in lines:
        console.print(shown(line), markup=False, emoji=False, soft_wrap=True)


def shown(text: str) -> str:
    """Text that any terminal can print: file names may hold anything."""
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c.isprintable() or c == " " else f"\\x{ord(c):02x}" for c in plain)


def size_text(size_bytes: int) -> str:
    """A size in units of 1000 bytes."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def ago(seconds: float) -> str:
    """How long ago something was."""
    if seconds < -1:
        return f"{-seconds:.0f} s ahead"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"
