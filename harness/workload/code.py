"""Which code a process ran: its source files by content, installed distributions by their record.

A name says where the code is found again, its value says which it was:

    ./helpers/solver.py    a file of the project, by its path from the project's folder
    mylib.solver           a module from elsewhere that no distribution holds (an editable one, say)
    numpy==2.1.0           an installed distribution, by the hashes that its installer noted
    env:MODE               an environment variable that the workload depends on, by its hash
    file:/data/w.npz       a file that it depends on outside the project; one in it is ./data/w.npz

Python's own library and this package are left out: versions of both stand in the record. What a
program reads besides code is seen where the workload declares it in `depends_on`.
"""

from __future__ import annotations

import email
import hashlib
import importlib.util
import os
import re
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.workload.location import Source

_MAIN = ("__main__", "__mp_main__")
"""The module that measures; `multiprocessing` gives it the second name."""

EDITED = "edited while it ran"
"""Stands for the content of a file that a process loaded before it was changed: none can match."""

UNREADABLE = "unreadable"
"""Stands for the content of code that cannot be found or read: none can match."""

ENV = "env:"
"""Marks a name as that of an environment variable, in `depends_on` as well."""

FILE = "file:"
_UNSET = "unset"

_SITES = ("site-packages", "dist-packages")
_SITE = "site:"
"""Marks a top-level name from an installed distribution, before it is known which one."""

Stamp = tuple[int, int, int]
"""When a file was last written, and last changed at all, in nanoseconds; and its bytes."""

_OWN = __name__.partition(".")[0]
_STDLIB = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})


def project_folder(source: Source) -> Path:
    """Return the folder that the names of a project's files start from.

    The next one above the workload's file that is a git repository, else the one that its module
    is imported from; without a file, the working directory.
    """
    if not source.file:
        return Path.cwd()
    file = Path(source.file).resolve()
    depth = source.module.count(".") + (file.name == "__init__.py")
    repositories = (folder for folder in file.parents if (folder / ".git").exists())
    return next(repositories, file.parents[depth])


class LoadedCode:
    """What a measuring process has loaded. Made before anything of the user's is imported."""

    def __init__(self) -> None:
        self.begin()
        self._stamps: dict[str, Stamp] = {}
        """Of each file, as it was when its module was executed."""
        self._known: dict[str, tuple[str, str]] = {}
        """Name and value by module."""
        execute, stamps = SourceFileLoader.exec_module, self._stamps

        def exec_module(loader: Any, module: ModuleType) -> None:
            stamps.setdefault(loader.path, _stamp(loader.path))
            execute(loader, module)

        SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign,assignment]

    def begin(self) -> None:
        """Take variables and files as they are now: once more in a process that was forked."""
        self.began_ns = time.time_ns()
        self._variables = dict(os.environ)

    def entries(self, project: Path, depends_on: Iterable[str] = ()) -> dict[str, str]:
        """Return names and values, sorted; of an installed distribution only that it is used.

        `depends_on` are the variables and files that a workload declares.
        """
        for name, module in list(sys.modules.items()):
            if name not in self._known and name.partition(".")[0] not in (_OWN, *_MAIN):
                self._known[name] = self._entry(name, module, project)
        declared = {self._declared(one, project) for one in depends_on}
        return dict(sorted({*self._known.values(), *declared} - {("", "")}))

    def _declared(self, one: str, project: Path) -> tuple[str, str]:
        if one.startswith(ENV):
            return one, _hash_of_variable(one, self._variables)
        file = project / one
        return _place_of(file, project) or f"{FILE}{file.resolve()}", self._value(str(file))

    def installed(self) -> list[str]:
        """Return the names that entries have so far of installed distributions."""
        modules = list(sys.modules.items())
        names = {self._entry(name, module, Path())[0] for name, module in modules}
        return sorted(name for name in names if name.startswith(_SITE))

    def _entry(self, name: str, module: ModuleType, project: Path) -> tuple[str, str]:
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            return "", ""
        parts = Path(file).parts
        site = next((parts.index(folder) for folder in _SITES if folder in parts), None)
        if site is not None:
            top = parts[site + 1].partition(".")[0]
            return ("", "") if top.startswith("__editable__") else (f"{_SITE}{top}", "")
        if file.startswith(_STDLIB) or not (file in self._stamps or _on_disk(file)):
            return "", ""  # Python's own, or made by a program that gave it a name
        return _place_of(file, project) or name, self._value(file)

    def _value(self, file: str) -> str:
        loaded = self._stamps.get(file)
        now = _stamp(file)
        # A time that is still to come says nothing: the clock was ahead when the file was written.
        edited = self.began_ns < max(now[:2]) <= time.time_ns()
        same = now == loaded if loaded else not edited
        return _digest_of(file) if same else EDITED


def installed(
    entries: Mapping[str, str], looked_up: dict[str, dict[str, str]] | None = None
) -> dict[str, str]:
    """Return entries in which top-level names have become their distributions, as they are now.

    What is in `known` is not looked up again; what is looked up is put there.
    """
    looked_up = {} if looked_up is None else looked_up
    named = {}
    for name, value in entries.items():
        if name.startswith(_SITE) and name not in looked_up:
            looked_up[name] = _distribution(name.removeprefix(_SITE))
        named.update(looked_up.get(name, {name: value}))
    return dict(sorted(named.items()))


def differences(entries: Mapping[str, str], project: Path) -> list[str]:
    """Return the names of what is other code now than a record's entries say."""
    return [name for name, value in entries.items() if _now(name, project) != value]


def project_differences(entries: Mapping[str, str], project: Path) -> list[str]:
    """Do what :func:`differences` does for the files of the project, which is all that is here."""
    return differences({n: v for n, v in entries.items() if n.startswith("./")}, project)


def proven(name: str, project: Path) -> bool:
    """Return whether a difference is an edit, and not a module that is found only where it ran."""
    return name.startswith("./") or "==" in name or _now(name, project) != UNREADABLE


def conflicts(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the names of what two processes ran in different versions.

    What only one of them loaded is no conflict, except another version of a distribution.
    """
    versions = {name.partition("==")[0]: name for name in other if "==" in name}
    return sorted(
        name
        for name, value in one.items()
        if (name in other and (other[name] != value or value == EDITED))
        or ("==" in name and versions.get(name.partition("==")[0], name) != name)
    )


def _place_of(file: str | Path, project: Path) -> str:
    path = Path(file).resolve()
    return f"./{path.relative_to(project).as_posix()}" if path.is_relative_to(project) else ""


def _hash_of_variable(name: str, variables: Mapping[str, str]) -> str:
    """Return no value: it may be secret."""
    value = variables.get(name.removeprefix(ENV))
    return _UNSET if value is None else hashlib.sha256(value.encode()).hexdigest()[:16]


def _now(name: str, project: Path) -> str:
    if name.startswith("./"):
        return _digest_of(str(project / name))
    if name.startswith(ENV):
        return _hash_of_variable(name, os.environ)
    if name.startswith(FILE):
        return _digest_of(name.removeprefix(FILE))
    if "==" in name:
        return _by_name(name.partition("==")[0]).get(name, UNREADABLE)
    return next((_digest_of(file) for file in _files_of(name)), UNREADABLE)


def _files_of(module: str) -> Iterator[str]:
    """Yield the file of a module that need not be imported here."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, OSError):  # an archive may be gone
        return
    if spec is None:
        return
    if not rest:
        if spec.origin:
            yield spec.origin
        return
    for folder in spec.submodule_search_locations or ():
        stem = os.path.join(folder, *rest)
        extensions = (stem + suffix for suffix in EXTENSION_SUFFIXES)
        for file in (f"{stem}.py", os.path.join(stem, "__init__.py"), *extensions):
            if os.path.exists(file):
                yield file


def _stamp(file: str) -> Stamp:
    try:
        state = os.stat(file)
    except OSError:
        return 0, 0, -1
    return state.st_mtime_ns, state.st_ctime_ns, state.st_size


def _on_disk(file: str) -> Path | None:
    """Return a file, or the archive that it is in; None where there is neither."""
    path = Path(file)
    while not path.exists() and path != path.parent:
        path = path.parent
    return path if path.is_file() else None


def _digest_of(file: str) -> str:
    path = _on_disk(file)
    return UNREADABLE if path is None else _hashed(str(path), *_stamp(str(path)))


@cache
def _hashed(file: str, *stamp: int) -> str:
    try:
        with open(file, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()[:16]
    except OSError:
        return UNREADABLE


def _distribution(top: str) -> dict[str, str]:
    """Return name and value of each distribution that has a top-level package or module."""
    versions = _by_name(top)
    for name in () if versions else _names_of(top, *sys.path):
        versions |= _by_name(name)
    return versions or {top: next((_digest_of(file) for file in _files_of(top)), UNREADABLE)}


@cache
def _names_of(top: str, *path: str) -> list[str]:
    """Return the names of the distributions that list a top-level package or module."""
    place = re.compile(rf"^{re.escape(top)}(?:[/.]|$)", re.MULTILINE)
    return [one.metadata["Name"] for one, listed in _listed(*path) if place.search(listed)]


@cache
def _listed(*path: str) -> list[tuple[metadata.Distribution, str]]:
    """Return each distribution with what it lists; Python's own reading of all takes 0.5 s."""
    files = ("RECORD", "top_level.txt")
    distributions = metadata.distributions()
    return [(one, "\n".join(one.read_text(file) or "" for file in files)) for one in distributions]


def _by_name(name: str) -> dict[str, str]:
    """Return the one entry of a distribution as it is installed now; none where it is not."""
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return {}
    noted = [distribution.read_text(file) or "" for file in ("RECORD", "direct_url.json")]
    value = hashlib.sha256("\n".join(noted).encode()).hexdigest()[:16]
    edited = _edited_ns(distribution, noted[0])
    about = distribution.read_text("METADATA")
    entry = _entry(about) if about else f"{distribution.name}=={distribution.version}"
    return {entry: value + (edited and f" {edited}")}


@cache
def _entry(about: str) -> str:
    """Return `name==version` as a distribution describes itself: slow to parse."""
    fields = email.message_from_string(about)
    return f"{fields['Name']}=={fields['Version']}"


def _edited_ns(distribution: metadata.Distribution, record: str) -> str:
    """Return when a source file was changed after it had been installed, "" if none was."""
    names = [line.partition(",")[0] for line in record.splitlines()]
    noted = next((name for name in names if name.endswith("/RECORD")), None)
    if noted is None:
        return ""
    site = str(distribution.locate_file(""))
    sources = (os.path.join(site, name) for name in names if name.endswith(".py"))
    newest = max((_stamp(file)[0] for file in sources), default=0)
    slack_ns = 10**10  # an installer may note what it wrote before it has written all
    return str(newest) if newest > _stamp(os.path.join(site, noted))[0] + slack_ns else ""
