"""`harness init`: benchmarks for a user's own project."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import print_page
from harness.errors import UsageError
from harness.init import next_steps
from harness.init.files import File, plan, write
from harness.init.function import check, parse
from harness.init.project import look
from harness.init.schema import schema as table_schema
from harness.output import init as words
from harness.records.printable import printable


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
    if checked:
        tried = not checked.subject.inputs
        print(words.traced_line(checked.subject.place, checked.size, tried))
    module = checked.subject.module if checked and checked.wakes_backend else ""
    print_page(next_steps.notes(project, module))
    if not dry_run:
        is_beside = checked is not None and checked.is_beside
        commands = next_steps.commands(directory, project, files, is_beside)
        print(printable("\n".join(words.next_lines(commands)), "\n"), flush=True)


def _print_files(files: Sequence[File], dry_run: bool) -> None:
    for file in files:
        path = printable(os.path.relpath(file.path))
        print(words.file_line(path, file.fate, dry_run, bool(file.lacks)))
        for line in file.lacks:
            print(f"{'':<17} {printable(line)}")
        if dry_run and file.is_written:
            print(printable("".join(f"    | {line}\n" for line in file.text.splitlines())), end="")
