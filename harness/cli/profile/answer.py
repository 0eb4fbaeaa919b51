"""What is said of a program that was profiled, and the exit code that follows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from harness.cli.output import check_writable, notes
from harness.errors import ExitCode, HarnessError, UsageError, nearest
from harness.jaxhooks import programs
from harness.jaxhooks.programs import Ran
from harness.output.profile import summary
from harness.output.profile_inside import inside_lines
from harness.output.report import files
from harness.profiles.causes.cause import IDS
from harness.profiles.figures import is_unknown
from harness.profiles.pprof import pprof_of
from harness.profiles.recorded import Recorded, read
from harness.profiles.totals import totals
from harness.profiles.tracks import save, trace_of
from harness.records.files import replaced
from harness.records.printable import printable
from harness.records.project_tables import FILE, project_table

SUFFIXES = (".html", ".json", ".json.gz", ".pb.gz")
"""Of the files that a profile can be written as."""

WIDTH, WIDEST = 100, 120
"""Characters of a line where there is no terminal, and on the widest one."""


def muted(mute: Sequence[str] | None) -> tuple[str, ...]:
    """Return the remedies that are left out: those of an option, and of the project.

    Raises:
        UsageError: one of them does not exist.
    """
    here = f"{Path(FILE)}: [tool.harness.profile] mute"
    of_project = project_table(Path(), "profile").get("mute", ())
    if not isinstance(of_project, list | tuple):
        raise UsageError(f'{here} is {of_project!r}; expected a list such as ["JH050"].')
    for where, ids in (("--mute", mute or ()), (here, of_project)):
        for one in ids:
            if one not in IDS:
                raise UsageError(
                    f"{where}: {one!r} is no remedy; expected an identifier as it is printed "
                    f"behind a remedy, such as JH050.{nearest(str(one), list(IDS))}"
                )
    return (*(mute or ()), *of_project)


def answer(
    profile: Recorded,
    console: Console | None = None,
    below: int = 1,
    every: bool = False,
    mute: Sequence[str] = (),
) -> list[str]:
    """Return a profile's answer: so short that its first line stays on a screen, else all of it.

    For a file `console` is None; `below` are lines of the screen that something else takes, such as
    the shell's prompt. With `every` all findings are there, whatever the height of the terminal.
    """
    if console is None or not console.is_terminal:
        return summary(profile, WIDTH, None, mute)
    width = min(console.width, WIDEST)
    return summary(profile, width, None if every else console.height - below, mute)


def check(report: Path) -> None:
    """Refuse a report that cannot be written."""
    check_format(report)
    check_writable("--report", report)


def check_format(output: Path) -> None:
    """Refuse a file whose suffix names none of the formats, or whose format needs an extra."""
    if not output.name.endswith(SUFFIXES):
        raise UsageError(
            f"{output} has none of the suffixes .html (a report), .json and .json.gz (a trace), "
            ".pb.gz (for pprof): give a file that ends in one of them."
        )
    if output.suffix == ".html":
        files.check_report()


def write(profile: Recorded, output: Path) -> str:
    """Write a profile in the format of the file's suffix; return how much that is."""
    if output.name.endswith(".pb.gz"):
        made = pprof_of(profile)
        with replaced(output, "wb", "Choose another place with -o.") as handle:
            handle.write(made)
        return f"{len(made) / 1e3:.1f} kB"
    if output.suffix != ".html":
        return f"{save(trace_of(profile), output)} events"
    from harness.output.report.profile.page import write as write_page  # pandas and altair

    return f"{write_page(profile, output) / 1e6:.1f} MB"


def tell(
    ran: Ran,
    max_compiles: int | None,
    max_seconds: float | None,
    report: Path | None,
    mute: Sequence[str] | None = None,
) -> int:
    """Print on standard error what the profile says; return the exit code."""
    if name := programs.signal_of(ran.code):
        _say(f"The program was ended by {name}.")
    code, used = ran.code, dict[str, float]()
    asked = {"--max-compiles": max_compiles, "--max-seconds": max_seconds}
    limits = {name: limit for name, limit in asked.items() if limit is not None}
    if not ran.processes:
        _say(
            f"Nothing was recorded in {ran.folder}: the program ran no Python, or one that ignores "
            "PYTHONPATH (-I, -E, -S) or was started with a cleared environment."
        )
        if report is not None:
            _say(f"harness: {report} cannot be written without a profile.")
        code = code or ExitCode.NOTHING
    else:
        try:
            profile = read(ran.folder)
            _say(*answer(profile, notes, below=2, mute=muted(mute)), *inside_lines(profile))
            if is_unknown(profile):
                code = code or ExitCode.NOTHING
            else:
                used = _used(profile)
            if report is not None:
                write(profile, report)
                _say(f"Report: {report}")
        except HarnessError as error:  # the program has run: what went wrong afterwards is told
            _say(f"harness: {error}")
            code = code or error.exit_code
        if not ran.complete:
            _say(f"How the program ended could not be written: {ran.folder} is full or gone.")
        _say(f"Profile: {ran.folder}")
    if any(used.get(name, 0) > limit for name, limit in limits.items()):
        code = code or ExitCode.WORSE
    if limits:
        text = _limits_text(limits, used)
        _say(f"harness: exit code {code:d}: the program ended with {ran.code}; {text}.")
    return code


def _used(profile: Recorded) -> dict[str, float]:
    total = next(totals(profile), None)
    return {
        "--max-compiles": sum(built.times("compile") for built in profile.builds),
        "--max-seconds": total.build_s if total is not None else 0.0,
    }


def _limits_text(limits: Mapping[str, float], used: Mapping[str, float]) -> str:
    if not used:
        return f"{' and '.join(limits)} cannot be checked without a profile"
    shown = {"--max-compiles": "{:.0f} compiled or loaded", "--max-seconds": "{:.3g} s of building"}
    return "; ".join(
        f"{shown[name].format(used[name])}, {'over' if used[name] > limit else 'within'} {name} "
        f"{limit}"
        for name, limit in limits.items()
    )


def _say(*lines: str) -> None:
    try:
        for line in lines:
            notes.print(printable(line), markup=False, emoji=False, soft_wrap=True)
    except (OSError, SystemExit):  # nobody reads it any more, for which rich ends the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
