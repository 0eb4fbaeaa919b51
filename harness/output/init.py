"""What `harness init` prints of what it wrote, what is in the way, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping

FATES = {
    "new": ("wrote", "would write"),
    "replaced": ("replaced", "would replace"),
    "added to": ("added to", "would add to"),
    "kept": ("kept", "kept"),
    "unchanged": ("unchanged", "unchanged"),
}
"""What became of a file, and what would."""

NOTES = {
    "starts-jax": "Importing {module} starts JAX (an array at the top of a module does that), so "
    "asv must start a process for each number, which takes minutes. Make that array in a function.",
    "from-index": "The workflows install {name} from pip's index, but yours came from elsewhere: "
    "set HARNESS at the top of both, such as {name} @ git+https://HOST/REPOSITORY",
    "hides-harness": "The folder harness/ here hides the installed harness from asv, which looks "
    "in the current folder first: rename it.",
    "searched": "setuptools finds packages by itself here, and would take {results}/ for one: pip "
    "install then fails, or installs the wrong one. Name yours in pyproject.toml:\n{table}",
}
"""What is in the way of measuring, and what to do."""

TABLES = {
    "module": '    [tool.setuptools]\n    py-modules = ["{package}"]',
    "package": '    [tool.setuptools.packages.find]\n    include = ["{package}*"]',
}
"""What pyproject.toml needs, for a package of one file and for one that is a folder."""

NEXT = {
    "run": "every workload once, and the table of stages",
    "commit": "results are filed under a commit",
    "asv": "8 processes each",
    "pages": "graphs over commits",
}
"""What the commands do that come next."""


def file_line(path: str, fate: str, planned: bool, lacks: bool) -> str:
    """What became, or is `planned` to become, of a file, which may lack lines."""
    more = ": is there, left as it is" if fate == "kept" else ""
    more += "; it needs these lines:" if lacks else ""
    return f"{FATES[fate][planned]:<13} {path}{more}"


def traced_line(place: str, size: int | None, is_tried: bool) -> str:
    """What a function is swept over; no other size is tried of one whose arguments are made."""
    if size is not None:
        return f"{place} traces; sweep: size = {size}, {4 * size}."
    return f"{place} traces{'; no size of it could be swept' if is_tried else ''}."


def next_lines(commands: Mapping[str, str]) -> list[str]:
    """The next commands, by what they do."""
    return ["\nNext:", *(f"  {command}    # {NEXT[name]}" for name, command in commands.items())]
