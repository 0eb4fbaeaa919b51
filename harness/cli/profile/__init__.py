"""`harness profile …`: one module per command, each thin: parse, call, print."""

from __future__ import annotations

import click

from harness.cli.lazy import Lazy, LazyGroup

HELP = """Why does a program compile so much, and what would it save?

\b
  harness profile -- python train.py --steps 10  where did its time go?
  harness profile -o FOLDER -- train.py          a .py file, -m MODULE, -c CODE
  harness profile -- pytest tests                any command that runs Python
  harness profile --max-compiles 40 -- train.py  exit code 1 if more is compiled
  harness profile show FOLDER --table causes     the tables behind the answer
  harness profile patch FOLDER -o fix.patch      remedies as a diff that is proven
  harness profile report FOLDER -o profile.html  timeline, tree, causes in a file
  harness profile diff BEFORE AFTER              what changed between two runs

The program runs unchanged: its own interpreter, arguments, input, output and signals. The answer
goes to standard error. The exit code is the program's if that is not 0 (128 + n if signal n ended
it); else 1 if a limit is exceeded, which the last line names, and 4 if nothing was recorded.
Followed are the Python processes that it starts, forks, or becomes by exec, as long as they inherit
PYTHONPATH and read it: not `python -I`, `-E` or `-S`, nor where the environment is cleared.
"""

COMMANDS = {
    "run": Lazy("profile.run:run", ""),  # what stands before `--` need not be typed
    "show": Lazy("profile.show:show", "Show what a profile found, or a table."),
    "try": Lazy("profile.remedies:try_", "Try remedies in a second run."),
    "patch": Lazy("profile.patch:patch", "Write remedies as a diff, each proven by a run."),
    "report": Lazy("profile.files:report", "Write a report (HTML) or a trace (for Perfetto)."),
    "diff": Lazy("profile.diff:diff", "Say what changed from profile A to profile B."),
}


class _RunByDefault(LazyGroup):
    """A group to which whatever is not one of its commands is a program to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help", "--help-all"):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of a run: `harness profile --help` is where they are looked for."""
        run = self.get_command(ctx, "run")
        assert run is not None
        own = [one for one in run.params if isinstance(one, click.Option)]
        return [*own[:-1], *super().get_params(ctx)]  # both end with --help-all


app = _RunByDefault(
    name="profile",
    lazy=COMMANDS,
    help=HELP,
    common="output max_compiles report",
    options_metavar="",
    subcommand_metavar="[OPTIONS] -- PROGRAM [ARG]... | COMMAND [ARG]...",
)
