"""`harness cache …`: one module per command, each thin: parse, call, print."""

from __future__ import annotations

from harness.cli.lazy import Lazy, LazyGroup

COMMANDS = {
    "inspect": Lazy("cache.inspect:inspect", "List every entry, readable or not."),
    "doctor": Lazy("cache.doctor:doctor", "Find what ails a cache, and mend it."),
    "ledger": Lazy("cache.ledger:ledger", "What did the cache do for a program?"),
    "report": Lazy("cache.report:report", "What did it do over runs and hosts?"),
    "explain": Lazy("cache.explain:explain", "Why did a compile hit, or miss?"),
    "advise": Lazy("cache.advise:advise", "Which settings would save it how much?"),
}

app = LazyGroup(
    name="cache",
    lazy=COMMANDS,
    help="What JAX's persistent compilation cache holds, what it did, and why it missed.",
)
