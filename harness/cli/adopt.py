"""`harness adopt`: workloads for what existing tests call."""

from __future__ import annotations

from pathlib import Path

from harness import scaffold
from harness.cli import options
from harness.cli.init import print_files, print_next, print_notes
from harness.cli.options import Argument, Option
from harness.errors import UsageError
from harness.records.printable import printable


@options.command(
    tests=Argument(metavar="FILE[::TEST]...", help="Tests, as pytest names them."),
    directory=Option("--project", metavar="DIR", help="The folder of your project."),
    force=Option(help="Replace these files where they are there."),
    dry_run=Option(help="Print what would be written, and write nothing."),
)
def adopt(
    tests: list[str], directory: Path = Path("."), force: bool = False, dry_run: bool = False
) -> None:
    r"""Turn existing tests into workloads: pytest-benchmark's, or any that pytest runs.

    \b
      harness adopt tests/test_speed.py                  those with the fixture `benchmark`, or all
      harness adopt tests/test_speed.py::test_predict    one
      harness adopt tests/test_speed.py --dry-run        what would be written

    \b
    Each test runs once, under pytest, in the interpreter that runs this command. What it calls is
    noted, with the shapes and dtypes of the arguments:
      benchmark(f, *args), benchmark.pedantic(f, args=...)
                                  f; where f is the test's own, what it calls with arrays
      a test without `benchmark`  every function of another module, but JAX's and NumPy's, that the
                                  file calls with arrays and that returns some

    \b
    The workload imports the function and makes random data of those shapes. Parameters of the test
    (`parametrize`, fixtures with params) that say what differs become axes; otherwise every case of
    the test is a value of the axis `test`. Arguments that are no arrays become static. Of a
    function that is made in the test, such as a lambda around `jax.grad` or a method of an object,
    nothing can be imported: the reason is told. Put it into a function of your package, and adopt
    the test again or name it in `harness init --function ... --inputs ...`.

    \b
    asv.conf.json and the other files of `harness init` are written too where they are missing.

    \b
    Exit codes: 0 fine; 2 wrong usage, or no test could be adopted.
    """
    project = scaffold.look(directory, force=False)
    found = [scaffold.adopt(test, project.folder) for test in tests]
    reasons: dict[str, list[str]] = {}
    for test, why in (each for one in found for each in one.left_out.items()):
        reasons.setdefault(why, []).append(test)
    left_out = [f"Not adopted: {', '.join(which)}: {why}." for why, which in reasons.items()]
    usable = [one for one in found if one.text]
    if not usable:
        raise UsageError("\n".join(left_out))
    files = scaffold.plan(project, None, force, usable)
    if not dry_run:
        scaffold.write(files)
    print_files(files, dry_run)
    for one in usable:
        for workload, function in one.functions.items():
            print(f"{one.module}.{workload} measures {function}.")
    print(printable("".join(f"{line}\n" for line in left_out)), end="")
    waking = [one.module for one in usable if one.wakes_backend]
    print_notes(project, f"what {waking[0]}.py measures" if waking else "")
    if not dry_run:
        print_next(directory, project)
