"""`harness cache …`: one module per command, each thin: parse, call, print."""

from __future__ import annotations

import signal
import threading
from typing import Any

import typer

from harness.cli import lazy
from harness.cli.lazy import Lazy

COMMANDS = {
    "inspect": Lazy("harness.cli.cache.inspect:inspect", "List every entry, readable or not."),
    "doctor": Lazy("harness.cli.cache.doctor:doctor", "Find what ails a cache, and mend it."),
    "ledger": Lazy("harness.cli.cache.ledger:ledger", "What did the cache do for a program?"),
    "explain": Lazy("harness.cli.cache.explain:explain", "Why did a compile hit, or miss?"),
    "ship": Lazy("harness.cli.cache.ship:ship", "Which way should I ship this program?"),
}

app = typer.Typer(
    cls=lazy.group(COMMANDS),
    help="What JAX's persistent compilation cache holds, what it did, and why it missed.",
    no_args_is_help=True,
    **lazy.SETTINGS,
)


@app.callback()
def _commands() -> None:
    # A job scheduler's signal ends Python at once, and leaves its children and scratch folders;
    # as an exception, it lets whoever made them take them away.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)
