"""Look at a repository: its git root, its name, its package, and what it has for asv already."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.asv.project import CONFIGURATIONS, configuration
from harness.errors import UsageError
from harness.records import git

_NOT_THE_PACKAGE = frozenset({"benchmarks", "docs", "doc", "examples", "scripts", "test", "tests"})


@dataclass(frozen=True)
class Project:
    """What is known of the project in `folder`."""

    folder: Path
    """Absolute; asv.conf.json belongs here."""
    git_root: Path | None
    """The top of the git repository; None without one."""
    name: str
    """As pyproject.toml says, else the name of the folder."""
    package: str
    """The name to import it by; "" if there is none to be seen."""
    builds: bool
    """Whether pip can build it: pyproject.toml says what or how, or there is a setup.py."""
    is_searched: bool
    """Whether setuptools looks for the packages in `folder` by itself: another folder there with a
    name that a package could have is one too many for it (setuptools 84)."""
    configuration: Path | None
    """asv's configuration, where there is one."""
    read: Any
    """What asv reads there; None where it is not there, or is to be replaced."""
    benchmarks: str
    """The folder of workloads, relative to `folder`; as the configuration says."""
    results: str
    """The folder of results, relative to `folder`; as the configuration says."""

    @property
    def root(self) -> Path:
        """Where `.github` belongs: the git root, or the folder itself without git."""
        return self.git_root or self.folder

    @property
    def subfolder(self) -> str:
        """The folder relative to the git root, with slashes; "" if they are the same."""
        return self.folder.relative_to(self.root).as_posix().removeprefix(".")

    @property
    def run_options(self) -> str:
        """What `harness run` needs to be told of folders with other names; begins with a space."""
        words = [] if self.benchmarks == "benchmarks" else ["--benchmarks", self.benchmarks]
        words += [] if self.results == "results" else ["--results", self.results]
        return "".join(f" {shlex.quote(word)}" for word in words)


def look(folder: Path, force: bool = False) -> Project:
    """Look at the project in `folder`; nothing is changed.

    With `force`, a configuration of asv's that is there is to be replaced: it says nothing.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is no folder. Name the folder of your project, where its pyproject.toml is."
        )
    folder = folder.resolve()
    top = git.output(folder, "rev-parse", "--show-toplevel")
    about = _pyproject(folder)
    project: Any = about.get("project")
    poetry: Any = about.get("tool", {}).get("poetry")
    declared = (project or poetry or {}).get("name")
    name = declared if isinstance(declared, str) and declared else folder.name or "project"
    there = [folder / name for name in CONFIGURATIONS if (folder / name).is_file()]
    try:
        conf = configuration(there[0]) if there and not force else None
    except UsageError as error:
        raise UsageError(f"{error} Mend it, or replace it with --force.") from None
    return Project(
        folder,
        Path(top).resolve() if top else None,
        name,
        _package(folder, name),
        bool({"project", "build-system"} & about.keys()) or (folder / "setup.py").is_file(),
        _is_searched(folder, about),
        there[0] if there else None,
        conf,
        str(conf.benchmark_dir) if conf else _benchmarks(folder),
        str(conf.results_dir) if conf else "results",
    )


def _pyproject(folder: Path) -> dict[str, Any]:
    file = folder / "pyproject.toml"
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # no TOML, or no UTF-8
        raise UsageError(f"{file} cannot be read: {error}. Mend it first.") from None


def _is_searched(folder: Path, about: dict[str, Any]) -> bool:
    backend = about.get("build-system", {}).get("build-backend", "setuptools.build_meta")
    keys = about.get("tool", {}).get("setuptools", {}).keys()
    return (
        bool({"project", "build-system"} & about.keys())
        and str(backend).startswith("setuptools.")
        and not {"packages", "py-modules", "package-dir"} & keys
        # Where these are, they usually name the packages.
        and not any((folder / old).is_file() for old in ("setup.py", "setup.cfg"))
        and not (folder / "src").is_dir()
    )


def _benchmarks(folder: Path) -> str:
    """Return `benchmarks`, or `workloads` where that has modules of the project's own.

    asv and the harness import every module of the folder.
    """
    modules = list((folder / "benchmarks").rglob("*.py"))
    try:
        theirs = modules and not any("harness" in one.read_text("utf-8") for one in modules)
    except (OSError, ValueError):
        theirs = True
    return "workloads" if theirs else "benchmarks"


def _package(folder: Path, name: str) -> str:
    """Return the package of a src or flat layout: the one of the project's name, else the first."""
    wanted = name.lower().replace("-", "_").replace(".", "_")
    for place in (folder / "src", folder):
        if not place.is_dir():
            continue
        # A package needs no __init__.py where it has the project's name.
        packages = [
            entry.name
            for entry in sorted(place.iterdir())
            if entry.is_dir()
            and entry.name.isidentifier()
            and entry.name not in _NOT_THE_PACKAGE
            and ((entry / "__init__.py").is_file() or entry.name.lower() == wanted)
        ]
        packages += [file.stem for file in (place / f"{wanted}.py",) if file.is_file()]
        packages.sort(key=lambda package: package.lower() != wanted)
        if packages:
            return packages[0]
    return ""
