"""What is to be written where, and writing it; an existing file is never replaced unasked."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import StoreError, UsageError
from harness.init import contents
from harness.init.contents import render
from harness.init.function import Checked
from harness.init.project import Project
from harness.records.files import OWN, replaced
from harness.records.installation import NAME, elsewhere

Fate = Literal["new", "replaced", "added to", "kept", "unchanged"]

IGNORED = (".asv/", "/report.html")
"""asv's environments and pages."""

MERGED = (
    "# Records of one machine from several clones: every line is whole, and a later one counts.",
    "{records} merge=union",
    "# Other files: in a conflict those that are there stay as they are, without marks in them.",
    "{asvs} -merge",
    "{ours} -merge",
)
"""How git merges results of several clones; the lines of `.gitattributes`."""

SUITE = ("from harness.asv import suite", "suite.install()")
"""What makes a folder of benchmarks an asv suite of workloads."""


@dataclass(frozen=True)
class File:
    """One file of a project, and what becomes of it."""

    path: Path
    text: str
    """All of the file as it will be; of a kept one, what would have been written."""
    fate: Fate
    lacks: tuple[str, ...] = ()
    """Lines that a file which is kept needs, for the user to add."""

    @property
    def is_written(self) -> bool:
        """Whether writing changes anything."""
        return self.fate in ("new", "replaced", "added to")


def plan(project: Project, checked: Checked | None = None, force: bool = False) -> list[File]:
    """Return the files of a project that can be measured; nothing is written.

    The first workload is for the function that was `checked`; without one it is an example, unless
    there are other modules in the folder of benchmarks. With `force`, existing files are replaced.
    """
    wakes = checked is not None and checked.wakes_backend
    benchmarks = project.folder / project.benchmarks
    conf = project.configuration or project.folder / "asv.conf.json"
    lacks = contents.lacking(project.read, wakes) if project.read else ()
    files = [_file(conf, contents.configuration(project, wakes), force, lacks)]

    init = benchmarks / "__init__.py"
    suite = _read(init) or ""
    installed = "suite.install()" in suite or "suite import install" in suite
    files.append(_file(init, render("benchmarks.py"), force, () if installed else SUITE))
    if checked is not None:
        name = contents.module_name(checked.subject)
        there = _read(benchmarks / f"{name}.py")
        if there is not None and f"({checked.subject.dotted})" not in there:
            name = contents.module_name(checked.subject, long=True)  # it measures another function
        text = contents.workload(checked, name)
        files.append(_file(benchmarks / f"{name}.py", text, force))
    else:
        example = benchmarks / "example.py"
        modules = (file.name for file in benchmarks.rglob("*.py"))
        if example.exists() or all(name.startswith(("_", ".")) for name in modules):
            text = render("example.py", package=project.package or "mypackage")
            files.append(_file(example, text, force))

    workflows = project.root / ".github" / "workflows"
    # Each project of a repository has workflows of its own.
    own = "-".join(("benchmarks", *filter(None, project.subfolder.split("/"))))
    files += [
        _file(workflows / f"{own}.yml", _workflow("ci.yml", project), force),
        _file(workflows / f"{own}-nightly.yml", _workflow("nightly.yml", project), force),
        _ignoring(project),
        _merging(project),
    ]
    return files


def write(files: Sequence[File]) -> None:
    """Write what is to be written, all of it or, where a place cannot be written to, nothing."""
    written = [file for file in files if file.is_written]
    for file in written:
        _check_place(file.path)
    for file in written:
        try:
            with replaced(file.path, "wb", "") as handle:
                handle.write(file.text.encode())
        except StoreError as error:
            raise UsageError(str(error).strip()) from None


def _file(path: Path, text: str, force: bool, lacks: Sequence[str] = ()) -> File:
    there = _read(path)
    if there is None:
        return File(path, text, "new")
    if there == text:
        return File(path, text, "unchanged")
    return File(path, text, "replaced") if force else File(path, text, "kept", tuple(lacks))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is there and cannot be read: {error}.") from None


def _workflow(template: str, project: Project) -> str:
    at = project.subfolder
    place = json.dumps(f" in {at}")[1:-1] if at else ""
    defaults = f"    defaults:\n      run:\n        working-directory: {json.dumps(at)}\n"
    results = shlex.quote(project.results)
    harness = elsewhere() or NAME
    path = json.dumps("/".join(["${{ github.workspace }}", *filter(None, [at])]))
    return render(
        template,
        place=place,
        defaults=defaults if at else "",
        python=json.dumps(contents.python()),
        night_python=json.dumps(contents.night_python()),
        install="." if project.builds else "jax",
        harness=harness,
        figures=harness.replace(NAME, f"{NAME}[figures]", 1),
        found="" if project.builds else f"  ASV_PYTHONPATH: {path} # pip installs nothing of it\n",
        benchmarks=shlex.quote(project.benchmarks),
        options=project.run_options,
        results=results,
        shown="" if results == "results" else f" -r {results}",
    )


def _ignoring(project: Project) -> File:
    path = project.folder / ".gitignore"
    there = {line.strip().strip("/") for line in (_read(path) or "").splitlines()}
    missing = [line for line in IGNORED if line.strip("/") not in there]
    if project.git_root:
        ignored = ["git", "-C", str(project.folder), "check-ignore", "--quiet"]
        missing = [
            line
            for line in missing
            if subprocess.run([*ignored, line.lstrip("/")], capture_output=True).returncode
        ]
    return _with_lines(path, missing, not missing)


def _merging(project: Project) -> File:
    results = Path(os.path.normpath(project.folder / project.results))
    # A pattern of git's leads down from its file, never up.
    folder = project.folder if results.is_relative_to(project.folder) else project.root
    path = folder / ".gitattributes"
    ends = {"records": "*.jsonl", "asvs": "*.json", "ours": f"*{OWN}"}
    patterns = {of: _pattern(results / "**" / end, folder) for of, end in ends.items()}
    lines = [line.format(**patterns) for line in MERGED]
    return _with_lines(path, lines, lines[1] in (_read(path) or "").splitlines())


def _with_lines(path: Path, lines: Sequence[str], there: bool) -> File:
    """Return a file of git's with lines behind what it has, unless they are there."""
    existing = _read(path)
    text = existing or ""
    if there:
        return File(path, text, "unchanged")
    text += "\n" if text and not text.endswith("\n") else ""
    added = "".join(f"{line}\n" for line in lines)
    return File(path, text + added, "new" if existing is None else "added to")


def _pattern(files: Path, folder: Path) -> str:
    """Return a pattern of .gitattributes, in quotes where a space or quote would end it."""
    pattern = os.path.relpath(files, folder)
    return json.dumps(pattern, ensure_ascii=False) if set(pattern) & set(' "\\') else pattern


def _check_place(path: Path) -> None:
    if path.exists():
        if not path.is_file() or not os.access(path, os.W_OK):
            raise UsageError(f"{path} cannot be written. Nothing has been written.")
        return
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir():
        raise UsageError(
            f"{path} cannot be written: {folder} is a file, not a folder. Nothing has been written."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"{path} cannot be written: the folder {folder} is read-only for you. Nothing has been "
            "written."
        )
