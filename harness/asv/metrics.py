"""What asv shows of a workload: the names and units of its metrics. All are better when lower."""

from __future__ import annotations

from harness.program.facts import FACTS

CACHE_METRICS = (
    *("load", "first_call_cold", "first_call_warm", "start_cold", "start_warm"),
    *("entry_bytes", "relative_warm"),
)
"""Of a workload that is measured with a cold and a warm persistent cache. `relative_warm` is the
first call's time, warm / cold."""

FACT_METRICS = tuple(name for name, fact in FACTS.items() if fact.better == "less")
"""The facts of a program, which no noise disturbs: a change of one is a change of the program."""

UNITS = {
    "entry_bytes": "bytes",
    "relative_warm": "ratio",
    **{fact: FACTS[fact].unit for fact in FACT_METRICS},
}
"""Units of what is no time."""
