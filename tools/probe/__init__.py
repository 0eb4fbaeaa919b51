"""Experiments with JAX's persistent compilation cache: real processes and directories.

`python -m tools.releases` tries every row on each installation.
"""

from typing import Literal, NamedTuple

from tools.probe.bench import NotApplicable, Unmet


class Finding(NamedTuple):
    """Whether all went as a user would expect, and what happened."""

    verdict: Literal["pass", "fail", "n/a"]
    happened: str


def examine(row, bench):
    """Do one row's experiment."""
    try:
        passed, happened = row.experiment(bench)
        return Finding("pass" if passed else "fail", happened)
    except Unmet as unmet:
        return Finding("fail", str(unmet))
    except NotApplicable as reason:
        return Finding("n/a", bench.scrub(str(reason)))
    except OSError as error:  # one experiment that cannot be set up must not cost the others
        return Finding("n/a", bench.scrub(f"the experiment could not be set up: {error}"))
