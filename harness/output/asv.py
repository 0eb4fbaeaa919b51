"""What the harness adds to the log of `asv`: a template for each code."""

LINES = {
    "no-plugin": 'asv.conf.json lacks "plugins": [".harness.asv.environment"], so nothing is known '
    "of options such as --quick and --bench, and everything is measured anew.",
    "other-commit": "the working tree is not commit {commit}, which results are filed under: "
    "{files}",
    "nothing-measured": "nothing was measured: {reason}; `asv run --show-stderr` has all",
    "reused": "{workloads}: measured before, and taken from records; HARNESS_FRESH=1 measures "
    "again",
    "works-again": "{names}: failed at {before}, and has a value at {after}; asv's --only-changed "
    "leaves such out",
    "one-side": "{name} is left out: only {commit} has it",
    "no-work": "nothing to profile: {stage} is no work of this process; asv's profiler sees "
    "{stages}.",
    "compile-only": "nothing to profile: {target} is compiled for in processes with an environment "
    "of its own.",
}


def line(code: str, **values: str) -> str:
    """Return what is written of a code."""
    return f"harness: {LINES[code].format(**values)}"
