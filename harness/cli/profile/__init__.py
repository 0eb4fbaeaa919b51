"""`harness profile …`: one module per command, each thin: parse, call, print."""

from __future__ import annotations

import typer
from typer.core import TyperGroup

HELP = """Why does a program compile so much, and what would it save?

\b
  harness profile -- python train.py --steps 10     run it, and say where the time went
  harness profile --live -- python -m package       the same, and what is compiled right now
  harness profile show FOLDER --table causes        the tables behind the answer
  harness profile report FOLDER -o profile.html     timeline, tree, causes in one file
  harness profile trace FOLDER -o trace.json        for Perfetto: every build and its stages
  harness profile diff BEFORE AFTER                 what changed between two runs
  harness profile check FOLDER --budget FILE        fail where more is compiled than allowed

The program runs unchanged, with its own input, output, exit code and signals; the processes that
it starts are followed.
"""


class _RunByDefault(TyperGroup):
    """Whatever is not one of the commands is a program to run."""

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_RunByDefault,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Each registers its command on `app`.
from harness.cli.profile import checking as checking  # noqa: E402
from harness.cli.profile import differing as differing  # noqa: E402
from harness.cli.profile import reporting as reporting  # noqa: E402
from harness.cli.profile import running as running  # noqa: E402
from harness.cli.profile import showing as showing  # noqa: E402
from harness.cli.profile import tracing as tracing  # noqa: E402
