"""What a machine's own A/A measurements say of its verdicts: how often they are wrong.

`harness aa` writes such a file per run into `results/MACHINE/aa/`; comparisons read the newest that
fits, print its rates, and take from it how much a case scatters between identical arms.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import HarnessWarning
from harness.frame.frame import axis_column
from harness.records.schema import plain_axes
from harness.stages import registry
from harness.verdicts.pairs import CASE, Row, axes_key, axes_of

SCHEMA = 1
"""Version of the layout of :class:`ErrorRates`."""

FOLDER = "aa"
"""Of a machine's folder in a results tree."""

SAFETY = 1.25
"""How much larger an effect must be than the largest that identical arms of the case have shown."""


class Rate(msgspec.Struct):
    """How many of how many, and the 95 % interval of the share (Clopper and Pearson)."""

    count: int
    of: int
    low: float
    high: float


class Noise(msgspec.Struct):
    """How one stage of a case differs between arms that are the same."""

    workload: str
    version: str
    axes: dict[str, Any]
    target: str
    transform: str
    precision: str
    scenario: str
    stage: str
    ratios: list[float]
    """Of each pair of arms: calibrated value of the second / of the first."""


class Power(msgspec.Struct):
    """How often a slow-down that was put in was found."""

    stage: str
    effect: float
    """The slow-down: 0.2 for a fifth more time."""
    effort: str
    found: Rate


class ErrorRates(msgspec.Struct):
    """The error rates of one machine, measured at one effort."""

    schema: int
    machine: str
    env: str
    commit: str
    started_at_ms: int
    effort: str
    pairs: int
    """Pairs of identical arms, one measured after the other."""
    flagged: Rate
    """Rows of those pairs that were called faster or slower."""
    flagged_by_stage: dict[str, Rate]
    flagged_by_asv: Rate
    """The same rows by asv's rule: `asv.commands.compare` with its factor and its rank test."""
    noise: list[Noise]
    power: list[Power]
    asv_by_stage: dict[str, Rate] = msgspec.field(default_factory=dict)
    narrowed: bool = False
    """A user chose some workloads, cases or targets: a run over all says more."""


_decoder = msgspec.json.Decoder(ErrorRates)


def newest(results: Path, machine: str, effort: str = "") -> ErrorRates | None:
    """Return the newest error rates of a machine, or None where there are none.

    Those of `effort` come before any others, and those of all workloads before those of some. A
    file that cannot be used is warned of and left out.

    Args:
        results: a results tree.
        machine: one of its machines.
        effort: the effort of what is judged; "" for any.
    """
    usable = []
    for path in sorted((results / machine / FOLDER).glob("*.json")):
        try:
            rates = _decoder.decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            _warn(path, str(error))
            continue
        if rates.schema == SCHEMA:
            usable.append(rates)
        else:
            _warn(path, f"it has schema version {rates.schema}, and this harness reads {SCHEMA}")
    return max(
        usable,
        key=lambda rates: (
            bool(effort) and rates.effort == effort,
            not rates.narrowed,
            rates.started_at_ms,
        ),
        default=None,
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
        f"rows (95 %: {flagged.low * 100:.2g} to {flagged.high * 100:.2g} %; effort "
        f"{rates.effort})."
    )
    power = [
        f"{one.stage} +{one.effect * 100:.3g} % in {one.found.count} of {one.found.of}"
        for one in rates.power
        if one.effort == rates.effort and one.found.of
    ]
    return f"{said} Slow-downs put in were found: {', '.join(power)}." if power else said


Scatter = Mapping[tuple[object, ...], float]
"""The largest effect between identical arms, by machine and case: 0.07 for 1.07 or 1/1.07."""


def scatter_of(rates: Iterable[ErrorRates]) -> Scatter:
    """Return how much the cases of machines scatter between identical arms."""
    scatter: dict[tuple[object, ...], float] = {}
    for one in rates:
        for noise in one.noise:
            axes = {axis_column(name): value for name, value in plain_axes(noise.axes).items()}
            key = (one.machine, *(getattr(noise, name) for name in CASE), axes_key(axes))
            known = [ratio for ratio in noise.ratios if 0 < ratio < math.inf]
            effects = [max(ratio, 1 / ratio) - 1 for ratio in known]
            scatter[key] = max([*effects, scatter.get(key, 0.0)])
    return scatter


def smallest_effect(scatter: Scatter, a: Row, b: Row, axes: Sequence[str]) -> float:
    """Return the smallest effect that counts between two rows: 0.05 is 5 % more time.

    It is the stage's, raised where the machine of a row shows more scatter.
    """
    least = registry.effect(b["stage"])
    if not scatter:
        return least
    keys = (
        (row["machine"], *(row[name] for name in CASE), axes_key(axes_of(row, axes)))
        for row in (a, b)
    )
    return max(least, SAFETY * max(scatter.get(key, 0.0) for key in keys))
