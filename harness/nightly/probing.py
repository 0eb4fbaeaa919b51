"""The A/A probe of a night: whether the machine is quiet enough for verdicts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec

from harness.nightly.commands import Runner, last_line
from harness.nightly.state import Night, Outcome

ALLOWED = 0.05
"""A night is noisy if more than one row, and more than this share of rows, of identical arms was
called different."""


def probe(night: Night, chosen: str, scratch: Path, own: Path, runner: Runner) -> Outcome:
    """Compare identical arms once.

    Args:
        night: which one.
        chosen: regular expression of the workloads.
        scratch: a results tree for what is measured here.
        own: the night's folder.
        runner: starts `harness aa`.

    Returns:
        `ok`, `noisy`, or `failed` where there are no rates.
    """
    log = own / "probe.log"
    command = [*(sys.executable, "-m", "harness", "aa", "--pairs", "1", "--select", chosen)]
    command += ["--effort", night.effort, "--machine", night.machine]
    code = runner.run([*command, "--results", str(scratch)], log)
    files = sorted((scratch / night.machine / "aa").glob("*.json"))
    if not files:
        return Outcome("failed", f"harness aa ended with {code}: {last_line(log)}", code)
    from harness.verdicts.error_rates import ErrorRates

    flagged = msgspec.json.decode(files[-1].read_bytes(), type=ErrorRates).flagged
    note = f"{flagged.count} of {flagged.of} rows of identical arms were called different"
    noisy = flagged.count > max(1, ALLOWED * flagged.of)
    return Outcome("noisy" if noisy else "ok", note, code)


def first_workload(benchmarks: Path) -> str:
    """Return an expression for the first workload: one is enough to see a noisy night."""
    from harness.declare import discovery
    from harness.declare.workload import name_of

    names = sorted(map(name_of, discovery.discover(benchmarks).workloads))
    return f"^{re.escape(names[0])}$" if names else "."
