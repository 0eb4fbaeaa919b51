"""The error rates that a results tree holds of its machines."""

from __future__ import annotations

import warnings
from pathlib import Path

import msgspec

from harness.errors import HarnessWarning
from harness.verdicts.error_rates import SCHEMA, ErrorRates, Rate

_decoder = msgspec.json.Decoder(ErrorRates)

FOLDER = "aa"
"""Of a machine's folder in a results tree."""


def newest(results: Path, machine: str, effort: str = "") -> ErrorRates | None:
    """Return the newest error rates of a machine, or None where there are none.

    Those of `effort` come before any others, and those of all workloads before those of some. A
    file that cannot be used is warned of and left out.

    Args:
        results: a results tree.
        machine: one of its machines.
        effort: the effort of what is judged; "" for any.
    """
    found = []
    for path in sorted((results / machine / FOLDER).glob("*.json")):
        try:
            rates = _decoder.decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            _warn(path, str(error))
            continue
        if rates.schema == SCHEMA:
            found.append(rates)
        else:
            _warn(path, f"it has schema version {rates.schema}, and this harness reads {SCHEMA}")
    if not found:
        return None
    return max(
        found,
        key=lambda rates: (
            bool(effort) and rates.effort == effort,
            not rates.narrowed,
            rates.started_at_ms,
        ),
    )


def _warn(path: Path, why: str) -> None:
    warnings.warn(
        f"The error rates in {path} are left out: {why}. `harness aa` measures them again.",
        HarnessWarning,
        stacklevel=3,
    )


def rates_text(rates: ErrorRates | None, machine: str) -> str:
    """Return how often verdicts are wrong on a machine, and which slow-downs they find."""
    if rates is None:
        return f"Error rates of {machine}: unknown; `harness aa` measures them."
    flagged = rates.flagged
    said = (
        f"On {machine}, identical arms were called different in {flagged.count} of {flagged.of} "
        f"rows (95 %: {_interval(flagged)}; effort {rates.effort})."
    )
    found = [
        f"{one.stage} +{one.effect * 100:.3g} % in {one.found.count} of {one.found.of}"
        for one in rates.power
        if one.effort == rates.effort and one.found.of
    ]
    return f"{said} Slow-downs put in were found: {', '.join(found)}." if found else said


def _interval(rate: Rate) -> str:
    return f"{rate.low * 100:.2g} to {rate.high * 100:.2g} %"
