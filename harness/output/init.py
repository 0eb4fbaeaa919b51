"""What `harness init` prints of what it wrote, what is in the way, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence

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
    "no-git": "There is no git repository here: harness run works, but asv files results under "
    "commits. Start one with: git init",
    "no-commit": "There is no commit yet, and asv files results under commits: commit first.",
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

COMMIT_FIRST = "Commit the new files before asv run: it files results under HEAD."


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


def next_lines(commands: Sequence[str], has_commits: bool) -> list[str]:
    """The next commands: run, asv machine, run, publish and preview."""
    quick, machine, run, publish, preview = commands
    return [
        "\nNext:",
        f"  {quick}    # every workload once, and the table of stages",
        f"  {machine} && {run}    # 8 processes each",
        f"  {publish} && {preview}    # graphs over commits",
        *([COMMIT_FIRST] if has_commits else []),
    ]
