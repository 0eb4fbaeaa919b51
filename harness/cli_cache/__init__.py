"""`harness cache …`: one module per command, each thin: parse, call, print."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="What JAX's persistent compilation cache holds, what it did, and why it missed.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Each registers its command on `app`.
from harness.cli_cache import doctoring as doctoring  # noqa: E402
from harness.cli_cache import explaining as explaining  # noqa: E402
from harness.cli_cache import inspecting as inspecting  # noqa: E402
from harness.cli_cache import ledgering as ledgering  # noqa: E402
from harness.cli_cache import probing as probing  # noqa: E402
from harness.cli_cache import recompiling as recompiling  # noqa: E402
from harness.cli_cache import sharing as sharing  # noqa: E402
from harness.cli_cache import shipping as shipping  # noqa: E402
