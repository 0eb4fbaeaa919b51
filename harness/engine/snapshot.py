"""A copy of the project, so that edits and checkouts change nothing that a sweep measures.

Names, digests and texts are those of the original: results of one content are alike with and
without a copy.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from harness.declare.location import Source
from harness.errors import StoreError, UsageError
from harness.watch.temporary import temporary_folder

LIMIT_BYTES = 512 * 2**20
"""A project with more than this is not copied."""

_LEFT_OUT = {".git", ".hg", ".svn", "__pycache__", "node_modules", ".asv", ".tox", ".nox", ".venv"}
_MARKS = ("pyvenv.cfg", "CACHEDIR.TAG")
"""Files that say of a folder that it is an environment, or a cache."""

_TREE = "tree"


class Snapshot(msgspec.Struct, frozen=True):
    """Where a project was, and where its copy is."""

    project: str
    copy: str
    folder: str
    """The working directory, where that is in the project: as it is in the copy."""
    paths: list[str]
    """Where modules of the project were imported from, in the order of the path: in the copy."""

    @property
    def root(self) -> Path:
        """The folder of the copy, which stands for the project's."""
        return Path(self.copy)

    def source(self, source: Source) -> Source:
        """Return where a workload is in the copy."""
        return msgspec.structs.replace(source, file=_moved(source.file, self.project, self.copy))

    def enter(self) -> None:
        """Have this process find the project in the copy, before it imports anything of it."""
        if self.folder:
            os.chdir(self.folder)
        moved = {path: _moved(path, self.project, self.copy) for path in sys.path}
        kept = [path for path, there in moved.items() if there == path or not Path(there).exists()]
        sys.path[:] = [*self.paths, *kept]

    def as_original(self, value: Any, kind: type[Any]) -> Any:
        """Return a struct in whose texts the original stands for the copy."""
        text = msgspec.json.encode(value).replace(self.copy.encode(), self.project.encode())
        return msgspec.json.decode(text, type=kind)


@contextmanager
def snapshot(project: Path, results: Path) -> Iterator[Snapshot]:
    """Yield a copy of `project`, without results, environments and caches; it is gone afterwards.

    Raises:
        UsageError: the project is too large.
        StoreError: it cannot be copied.
    """
    project = project.resolve()
    files, links = _listed(project, results.resolve())
    with temporary_folder() as folder:
        copy = folder / _TREE
        try:
            _fill(copy, project, files, links)
        except OSError as error:
            raise StoreError(
                f"{project} cannot be copied to {copy}: {error}. Set TMPDIR to a folder with "
                "room, or measure without --from-snapshot."
            ) from error
        paths = [_moved(path, str(project), str(copy)) for path in _paths(str(project))]
        yield Snapshot(
            str(project),
            str(copy),
            _moved(os.getcwd(), str(project), str(copy), otherwise=""),
            [path for path in paths if Path(path).exists()],  # an environment is left out
        )


def _listed(project: Path, results: Path) -> tuple[list[Path], list[Path]]:
    """Return the files of a project and its symbolic links."""
    files, links = [], []
    sizes: dict[str, int] = {}
    for top, folders, names in os.walk(project):
        for folder in list(folders):
            path = Path(top, folder)
            if path.is_symlink():
                links.append(path)
            is_left_out = folder in _LEFT_OUT or any((path / mark).exists() for mark in _MARKS)
            if path.is_symlink() or path == results or is_left_out:
                folders.remove(folder)
        for path in (Path(top, name) for name in names if name not in _LEFT_OUT):
            if path.is_symlink():
                links.append(path)
            elif path.is_file():
                files.append(path)
                part = path.relative_to(project).parts[0]
                sizes[part] = sizes.get(part, 0) + path.stat().st_size
    if sum(sizes.values()) > LIMIT_BYTES:
        largest = sorted(sizes, key=lambda part: -sizes[part])[:3]
        named = ", ".join(f"{part} {sizes[part] / 2**20:.0f} MiB" for part in largest)
        raise UsageError(
            f"--from-snapshot: {project} holds {sum(sizes.values()) / 2**20:.0f} MiB, more than "
            f"the {LIMIT_BYTES / 2**20:.0f} MiB that are copied; the largest: {named}. Move data "
            "out of the project, or measure without --from-snapshot."
        )
    return files, links


def _fill(copy: Path, project: Path, files: list[Path], links: list[Path]) -> None:
    copy.mkdir()
    for file in files:
        there = copy / file.relative_to(project)
        there.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # gone since it was seen
            shutil.copy2(file, there)
    for link in links:
        there = copy / link.relative_to(project)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.symlink_to(_moved(str(link.resolve()), str(project), str(copy)))


def _paths(project: str) -> list[str]:
    """Return where modules of the project are found: on the path, or by an editable install."""
    found = [path for path in sys.path if _inside(path, project)]
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and _inside(file, project) and "." not in name:
            path = Path(file).resolve()
            found.append(str(path.parents[path.name == "__init__.py"]))
    return list(dict.fromkeys(os.path.abspath(path) for path in found))


def _inside(path: str, folder: str) -> bool:
    return Path(path).resolve().is_relative_to(folder)


def _moved(path: str, project: str, copy: str, otherwise: str | None = None) -> str:
    """Return a path of the project as it is in the copy; any other, or `otherwise`, as it is."""
    resolved = Path(path).resolve()
    if not path or not resolved.is_relative_to(project):
        return path if otherwise is None else otherwise
    return str(Path(copy) / resolved.relative_to(project))
