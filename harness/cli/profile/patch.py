"""`harness profile patch`: remedies as a diff of the program's files, each proven by a run."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Option
from harness.cli.output import say
from harness.errors import ExitCode, UsageError
from harness.output import profile_patch as words
from harness.patches import proof as patches
from harness.patches.proof import Patches, Proposal
from harness.profiles.recorded import read
from harness.records.units import counted


@options.command(
    common="output most yes",
    output=Option("-o", "--output", metavar="FILE", help="Write the diff into a file."),
    most=Option(min=1, help="How many remedies, those that save most first."),
    yes=Option("-y", "--yes", help="Run the program without a question."),
)
def patch(
    *, folder: options.Profile, output: Path | None = None, most: int = 5, yes: bool = False
) -> None:
    r"""Write remedies as a diff, each proven by a run of the changed program.

    \b
      harness profile -o FOLDER -- python train.py --steps 10
      harness profile patch FOLDER -o fix.patch
      git apply fix.patch

    The program runs in copies of its project: twice as it is, then with each change. A change is
    shown if the results are equal, its builds are gone, and nothing else is built more. Compared is
    what both runs as it is agree on: output, files written below the copy, and what jitted
    functions return, but for rounding. Your files are not changed; a program that writes elsewhere,
    or sends something, does so in each run.

    Written are: jit once, with what is captured as arguments; static numbers as dynamic arguments;
    a dtype where a value is made; Python loops over NumPy arrays; np.unique and masks by NumPy.

    Exit codes: 0 a patch; 2 wrong usage, or the program fails as it is; 4 no profile, or no patch.
    """
    profile = read(folder)
    program = patches.program_of(profile)
    proposed, left = patches.proposals(profile, program)
    chosen, later = proposed[:most], proposed[most:]
    proof = Patches([], [])
    if chosen:
        _ask(patches.runs(len(chosen)), program.root, yes)
        with tempfile.TemporaryDirectory(prefix="harness-patch-") as scratch:
            proof = patches.prove(program, chosen, Path(scratch), _progress)
    proof.left += left
    if not proof.proven + proof.left:
        say("the profile has no remedy.")
        raise Exit(ExitCode.NOTHING)
    lines = [words.answer(proof), *map(words.proven_line, proof.proven)]
    if proof.left:
        lines += ["", "Not patched:", *words.left_lines(proof)]
    if later:
        lines += ["", f"{counted(len(later), 'remedy')} more: --most {len(proposed)}."]
    if proof.diff and output is not None:
        output.write_text(proof.diff, encoding="utf-8")
        lines += ["", f"Apply it with: git apply {output}"]
    elif proof.diff:
        lines += ["", proof.diff]
    click.echo("\n".join(lines))
    if not proof.proven:
        raise Exit(ExitCode.NOTHING)


def _ask(times: int, root: Path, yes: bool) -> None:
    text = f"The program runs {counted(times, 'time')} in copies of {root}"
    if yes:
        say(f"{text[0].lower()}{text[1:]}; what it prints is not shown.")
    elif not sys.stdin.isatty():
        raise UsageError(f"{text}, and does again what it does elsewhere. If that is fine: --yes")
    elif not click.confirm(f"{text}. Go on?", default=True, err=True):
        raise Exit(ExitCode.NOTHING)


def _progress(changed: Sequence[Proposal]) -> None:
    names = ", ".join(words.about(one.finding) for one in changed)
    say(f"runs with {names} changed" if names else "runs as it is")
