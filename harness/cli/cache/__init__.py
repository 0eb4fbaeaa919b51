"""`harness cache …`: one module per command, each thin: parse, call, print."""

from __future__ import annotations

from harness.cli.lazy import Lazy, LazyGroup

COMMANDS = {
    "inspect": Lazy("cache.inspect:inspect", "List every entry, and how large and old it all is."),
    "doctor": Lazy("cache.doctor:doctor", "Check a cache directory and repair it."),
    "ledger": Lazy("cache.ledger:ledger", "Record what the cache did for programs; compare runs."),
    "explain": Lazy("cache.explain:explain", "Explain why a compile hit or missed."),
}

app = LazyGroup(
    name="cache",
    lazy=COMMANDS,
    help="Show what JAX's persistent compilation cache holds and did, and why it missed.",
)
