"""`harness init`: benchmarks for a user's own project."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli import options
from harness.cli.options import Argument, Option
from harness.errors import UsageError
from harness.init.files import File, plan, write
from harness.init.function import check, parse
from harness.init.project import Project, look
from harness.init.schema import schema as table_schema
from harness.records.installation import NAME, elsewhere
from harness.records.printable import printable
from harness.workload.location import asv_path


@options.command(
    common="function arg inputs dry_run force",
    directory=Argument(metavar="[DIR]", help="The folder of your project."),
    function=Option(
        metavar="PACKAGE.MODULE:NAME",
        help="Write a workload for this function. Needs --arg or --inputs.",
    ),
    arg=Option(
        metavar="DTYPE[SIZES]",
        help="An argument: float32[64,784], key[] (a PRNG key). Repeat it in the function's order; "
        "float32[] is a scalar.",
    ),
    inputs=Option(
        metavar="PACKAGE.MODULE:NAME",
        help="Or a function that returns the arguments. As a tuple: pytrees, parameters, whatever "
        "the function takes.",
    ),
    force=Option(help="Replace existing files."),
    dry_run=Option(help="Only print what would be written."),
    schema=Option(
        help="Print the JSON Schema of [tool.harness] in pyproject.toml, for editors; see "
        "docs/method.md. Nothing is written."
    ),
)
def init(
    directory: Path = Path("."),
    function: list[str] | None = None,
    arg: list[str] | None = None,
    inputs: str = "",
    force: bool = False,
    dry_run: bool = False,
    schema: bool = False,
) -> None:
    r"""Set up benchmarks in a project: asv.conf.json, a workload, two CI workflows.

    \b
      harness init                    with an example that runs as it is
      harness init --function mypackage.models:predict \
          --arg "float32[784,256]" --arg "float32[64,784]"
      harness init --function train:loss --inputs fixtures:make_batch
      harness init packages/mine      a project in a subfolder of its repository

    \b
    Files, of which existing ones are not changed:
      asv.conf.json                              what asv measures, and in which environments
      benchmarks/__init__.py                     makes workloads benchmarks
      benchmarks/example.py, or predict.py       the first workload
      .github/workflows/benchmarks.yml           each pull request against its base, one comment
      .github/workflows/benchmarks-nightly.yml   harness nightly; results on the branch `results`
      .gitignore                                 gets the lines .asv/ and /report.html
      .gitattributes                             gets lines for merging results of several clones

    Where benchmarks/ has modules of the project's own, the folder is called workloads/: asv imports
    all modules of its folder. Workflows go to the top of the repository, and those of a project in
    a subfolder are named after it: benchmarks-packages-mine.yml.

    \b
    What an existing file needs is printed; --force replaces it. Run it again with another
    --function for one more workload. The function is first imported and traced by the interpreter
    that runs this command: install your project there (python -m pip install -e .) or, for a folder
    of scripts, keep the module in DIR. If it also traces with one size four times as large, the
    workload sweeps that size.

    \b
    Exit codes: 0 fine; 2 wrong usage, a function that does not import or trace, a place that cannot
    be written. Next: docs/getting-started.md.
    """
    if schema:
        print(json.dumps(table_schema(), indent=2, ensure_ascii=False))
        return
    if len(function or ()) > 1:
        raise UsageError(
            "--function is given more than once, and --arg would not say which one it is for. Run "
            "harness init once per function; it adds to what is there."
        )
    if (arg or inputs) and not function:
        raise UsageError("--arg and --inputs need the function that they are for: --function.")
    subject = parse(function[0], arg or [], inputs) if function else None
    project = look(directory, force)
    checked = check(subject, project.folder) if subject else None
    files = plan(project, checked, force)
    if not dry_run:
        write(files)
    _print_files(files, dry_run)
    if checked and checked.size is not None:
        print(f"{checked.subject.place} traces; sweep: size = {checked.size}, {4 * checked.size}.")
    elif checked:
        no = "" if checked.subject.inputs else "; no size of it could be swept"
        print(f"{checked.subject.place} traces{no}.")
    _print_notes(project, checked.subject.module if checked and checked.wakes_backend else "")
    if not dry_run:
        _print_next(directory, project, beside=checked is not None and checked.is_beside)


def _print_files(files: Sequence[File], dry_run: bool) -> None:
    words = {
        "new": "would write" if dry_run else "wrote",
        "replaced": "would replace" if dry_run else "replaced",
        "added to": "would add to" if dry_run else "added to",
        "kept": "kept",
        "unchanged": "unchanged",
    }
    for file in files:
        kept = ": is there, left as it is" if file.fate == "kept" else ""
        kept += "; it needs these lines:" if file.lacks else ""
        print(f"{words[file.fate]:<13} {printable(os.path.relpath(file.path))}{kept}")
        for line in file.lacks:
            print(f"{'':<17} {printable(line)}")
        if dry_run and file.is_written:
            print(printable("".join(f"    | {line}\n" for line in file.text.splitlines())), end="")


def _print_notes(project: Project, wakes_backend: str) -> None:
    """Say what is in the way of measuring; `wakes_backend` is a module that starts JAX."""
    if wakes_backend:
        print(
            f"Importing {wakes_backend} starts JAX (an array at the top of a module does that), so "
            "asv must start a process per number instead of forking, which takes minutes: better "
            "make that array in a function."
        )
    if project.git_root is None:
        print(
            "There is no git repository here: harness run works, but asv files results under "
            "commits. Start one with: git init"
        )
    elif not project.has_commits:
        print("There is no commit yet, and asv files results under commits: commit first.")
    if not elsewhere():
        print(
            f"The workflows install {NAME} from pip's index, and yours came from elsewhere: name "
            f"what they are to install in HARNESS there, such as {NAME} @ git+https://HOST/REPOSITORY"
        )
    own = project.folder / "harness"
    if own.is_dir() and not (own / "asv" / "environment.py").is_file():
        print(
            "The folder harness/ here hides the installed harness from asv, which looks in the "
            "current folder first: rename it."
        )
    if project.is_searched and project.results.isidentifier():
        package = project.package or "mypackage"
        print(
            f"setuptools looks for your package by itself here, and will take {project.results}/ "
            "for one as soon as that is there: pip install then fails, or installs the wrong one. "
            "Name yours in pyproject.toml:"
        )
        if (project.folder / f"{package}.py").is_file():
            print(f'    [tool.setuptools]\n    py-modules = ["{package}"]')
        else:
            print(f'    [tool.setuptools.packages.find]\n    include = ["{package}*"]')


def _print_next(directory: Path, project: Project, beside: bool = False) -> None:
    """Print the next commands; asv finds a module that lies `beside` the benchmarks if told to."""
    go = f"cd {shlex.quote(str(directory))} && " if directory.resolve() != Path.cwd() else ""
    at = _prefix(project.folder)
    print("\nNext:")
    quick = f"{go}{at}harness run --effort quick{project.run_options}"
    print(f"  {printable(quick)}    # every workload once, and the table of stages")
    others = ":$ASV_PYTHONPATH" * bool(asv_path())
    path = f"ASV_PYTHONPATH=$PWD{others} " * beside
    asv = printable(f"{path}{at}asv run -E existing --set-commit-hash HEAD")
    print(f"  {printable(at)}asv machine --yes && {asv}    # 8 processes each")
    print(f"  {printable(at)}asv publish && {printable(at)}asv preview    # graphs over commits")
    if project.has_commits:
        print("Commit the new files before asv run: it files results under HEAD.")
    sys.stdout.flush()


def _prefix(folder: Path) -> str:
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
