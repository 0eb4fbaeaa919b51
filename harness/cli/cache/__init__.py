"""`harness cache …`: one module per command, each thin: parse, call, print."""

from __future__ import annotations

import signal
import threading
from typing import Any

import typer

app = typer.Typer(
    help="What JAX's persistent compilation cache holds, what it did, and why it missed.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _commands() -> None:
    # A job scheduler's signal ends Python at once, and leaves its children and scratch folders;
    # as an exception, it lets whoever made them take them away.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


# Each registers its command on `app`.
from harness.cli.cache import doctoring as doctoring  # noqa: E402
from harness.cli.cache import explaining as explaining  # noqa: E402
from harness.cli.cache import inspecting as inspecting  # noqa: E402
from harness.cli.cache import ledgering as ledgering  # noqa: E402
from harness.cli.cache import probing as probing  # noqa: E402
from harness.cli.cache import shipping as shipping  # noqa: E402
