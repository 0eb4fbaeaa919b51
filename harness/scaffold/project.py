"""Look at a repository: its git root, its name, its package, and what it has for asv already."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError

CONFIGURATIONS = ("asv.conf.json", "asv.conf.jsonc")
"""The names under which asv 0.6.6 looks for its configuration, in this order."""

_NOT_THE_PACKAGE = frozenset({"benchmarks", "docs", "doc", "examples", "scripts", "test", "tests"})


@dataclass(frozen=True)
class Project:
    """What is known of the project in `folder`."""

    folder: Path
    """Absolute; asv.conf.json belongs here."""
    git_root: Path | None
    """The top of the git repository; None without one."""
    has_commits: bool
    name: str
    """As pyproject.toml says, else the name of the folder."""
    package: str
    """The name to import it by; "" if there is none to be seen."""
    builds: bool
    """Whether pip can build it: there is a pyproject.toml with a project, or a setup.py."""
    configuration: Path | None
    """asv's configuration, where there is one."""
    benchmarks: str = "benchmarks"
    """The folder of benchmarks, relative to `folder`."""

    @property
    def root(self) -> Path:
        """Where `.github` belongs: the git root, or the folder itself without git."""
        return self.git_root or self.folder

    @property
    def subfolder(self) -> str:
        """The folder relative to the git root, with slashes; "" if they are the same."""
        return self.folder.relative_to(self.root).as_posix().removeprefix(".")


def look(folder: Path) -> Project:
    """Look at the project in `folder`; nothing is changed.

    Raises:
        UsageError: there is no such folder, or one of its files cannot be read.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is no folder. Name the folder of your project, where its pyproject.toml is."
        )
    folder = folder.resolve()
    top = _git(folder, "rev-parse", "--show-toplevel")
    about = _pyproject(folder)
    project: Any = about.get("project")
    poetry: Any = about.get("tool", {}).get("poetry")
    declared = (project or poetry or {}).get("name")
    name = declared if isinstance(declared, str) and declared else folder.name or "project"
    there = [folder / name for name in CONFIGURATIONS if (folder / name).is_file()]
    return Project(
        folder,
        Path(top).resolve() if top else None,
        bool(_git(folder, "rev-parse", "--verify", "--quiet", "HEAD")),
        name,
        _package(folder, name),
        "project" in about or poetry is not None or (folder / "setup.py").is_file(),
        there[0] if there else None,
    )


def _pyproject(folder: Path) -> dict[str, Any]:
    file = folder / "pyproject.toml"
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # no TOML, or no UTF-8
        raise UsageError(f"{file} cannot be read: {error}. Mend it first.") from None


def _package(folder: Path, name: str) -> str:
    """Return the package of a src or flat layout: the one of the project's name, else the first."""
    wanted = name.lower().replace("-", "_").replace(".", "_")
    for place in (folder / "src", folder):
        if not place.is_dir():
            continue
        # A package needs no __init__.py where it has the project's name.
        found = [
            entry.name
            for entry in sorted(place.iterdir())
            if entry.is_dir()
            and entry.name.isidentifier()
            and entry.name not in _NOT_THE_PACKAGE
            and ((entry / "__init__.py").is_file() or entry.name.lower() == wanted)
        ]
        found += [file.stem for file in (place / f"{wanted}.py",) if file.is_file()]
        found.sort(key=lambda package: package.lower() != wanted)
        if found:
            return found[0]
    return ""


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", os.fspath(folder), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError:  # no git on this machine
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
