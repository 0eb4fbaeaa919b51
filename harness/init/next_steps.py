"""What is in the way of measuring a project, and the commands that come next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.init.files import File
from harness.init.project import Project
from harness.output.init import NOTES, TABLES
from harness.records.installation import NAME, elsewhere
from harness.workload.location import asv_path


def notes(project: Project, module: str) -> Iterator[str]:
    """Yield what is in the way of measuring; `module` is one that starts JAX, or ""."""
    if module:
        yield NOTES["starts-jax"].format(module=module)
    if not elsewhere():
        yield NOTES["from-index"].format(name=NAME)
    own = project.folder / "harness"
    if own.is_dir() and not (own / "asv" / "environment.py").is_file():
        yield NOTES["hides-harness"]
    if project.is_searched and project.results.isidentifier():
        package = project.package or "mypackage"
        is_module = (project.folder / f"{package}.py").is_file()
        table = TABLES["module" if is_module else "package"].format(package=package)
        yield NOTES["searched"].format(results=project.results, table=table)


def commands(
    directory: Path, project: Project, files: Sequence[File], beside: bool
) -> dict[str, str]:
    """Return the commands that measure a project, commit what was written, and run asv.

    asv finds a module that lies `beside` the benchmarks where its path names the folder.
    """
    go = f"cd {shlex.quote(str(directory))} && " if directory.resolve() != Path.cwd() else ""
    at = prefix(project.folder)
    others = ":$ASV_PYTHONPATH" * bool(asv_path())
    path = f"ASV_PYTHONPATH=$PWD{others} " * beside
    run = f"{path}{at}asv run -E existing --set-commit-hash HEAD"
    written = dict.fromkeys(_top(file.path, project) for file in files if file.is_written)
    begin = "git init --quiet && " * (project.git_root is None)
    commit = f"{begin}git add {shlex.join(written)} && git commit --quiet -m Benchmarks"
    return {
        "run": f"{go}{at}harness run --effort quick{project.run_options}",
        **({"commit": commit} if written else {}),
        "asv": f"{at}asv machine --yes && {run}",
        "pages": f"{at}asv publish && {at}asv preview",
    }


def _top(path: Path, project: Project) -> str:
    """Return what has `path` at the top of the project, or of its repository."""
    top = project.folder if path.is_relative_to(project.folder) else project.root
    return os.path.relpath(top / path.relative_to(top).parts[0], project.folder)


def prefix(folder: Path) -> str:
    """Return what runs a program of this environment from a shell that does not have it on PATH.

    `uv run` and `pixi run` change PATH for one command only; conda's activate and venv's stay.
    """
    scripts = Path(sys.executable).parent
    if "PIXI_PROJECT_MANIFEST" in os.environ:
        return "pixi run "
    if "UV_RUN_RECURSION_DEPTH" in os.environ:
        # One of `uv run --with` is gone for the next command: its scripts stay in uv's cache.
        return "uv run " if scripts.is_relative_to(folder) else f"{shlex.quote(str(scripts))}/"
    command = shutil.which("harness")
    # A link to this environment's, or a launcher that begins with this Python.
    if command and Path(command).resolve().parent == scripts:
        return ""
    launcher = Path(command).read_bytes()[:500] if command else b""
    return "" if os.fsencode(sys.executable) in launcher else f"{shlex.quote(str(scripts))}/"
