"""What a machine's own A/A measurements say of its verdicts: how often they are wrong.

`harness aa` writes such a file per run into `results/MACHINE/aa/`. Comparisons print the rates of
their own effort and environment, or say that none are known.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from scipy.stats import binomtest

from harness.errors import HarnessWarning
from harness.records import json_file
from harness.records.files import own_file, own_names
from harness.records.json_file import Count, Milliseconds
from harness.records.store import machine_folder

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 2
"""Version of the layout of :class:`ErrorRates`; from 2 on it has a checksum."""

METHOD = 2
"""The way to verdicts: rates of an older one say nothing of this one."""

FOLDER = "aa"
"""Of a machine's folder in a results tree."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Rate(msgspec.Struct):
    """How many of how many, and the 95 % interval of the share (Clopper and Pearson)."""

    count: Count
    of: Count
    low: Share
    high: Share


def rate(count: int, of: int) -> Rate:
    """Return a share with its 95 % interval.

    Source: C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413, as in
    :meth:`scipy.stats.BinomTestResult.proportion_ci`.
    """
    if not of:
        return Rate(0, 0, 0.0, 1.0)
    low, high = binomtest(count, of).proportion_ci(0.95, "exact")
    return Rate(count, of, float(low), float(high))


def total(rates: Iterable[Rate]) -> Rate:
    """Return the rate of all together."""
    listed = list(rates)
    return rate(sum(one.count for one in listed), sum(one.of for one in listed))


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
    """Of each pair of arms: second / first, of the values that a comparison tests."""


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
    started_at_ms: Milliseconds
    effort: str
    pairs: Count
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
    families: dict[str, Rate] = msgspec.field(default_factory=dict)
    """By stage, the pairs of identical arms in which a row of it, or all together, was called."""
    method: int = 1
    """The :data:`METHOD` that judged; 1 in files of before 0.2.0."""


class Setting(NamedTuple):
    """What error rates belong to."""

    machine: str
    effort: str
    env: str
    """The name of the environment, which says the versions of Python and JAX."""

    def __str__(self) -> str:
        """Return it for people: `box, effort default, existing-py3.13-jax0.12.0.1`."""
        return f"{self.machine}, effort {self.effort}, {self.env}"


def setting_of(rows: pd.DataFrame, machine: str) -> Setting:
    """Return what most rows of a machine were measured with."""
    return Setting(machine, *(str(rows[name].mode().iat[0]) for name in ("effort", "env")))


def stored(results: Path, machine: str, effort: str) -> list[ErrorRates]:
    """Return what is stored of a machine and an effort, best first.

    Those of all workloads come before those of some, and newer ones before older ones. Left out
    are those that an older way to judge was measured with, and, with a warning, files that cannot
    be used.
    """
    usable = []
    folder = machine_folder(results, machine) / FOLDER
    for path in (own_file(folder, name) for name in own_names(folder)):
        try:
            rates = json_file.read(path, ErrorRates)
        except json_file.DamagedError as error:
            _warn(path, str(error))
            continue
        if not 1 <= rates.schema <= SCHEMA:
            _warn(path, f"it has schema version {rates.schema}; this harness reads 1 to {SCHEMA}")
        elif rates.effort == effort and rates.method == METHOD:
            usable.append(rates)
    return sorted(usable, key=lambda rates: (rates.narrowed, -rates.started_at_ms))


def _warn(path: Path, why: str) -> None:
    warnings.warn(
        f"The error rates in {path} are left out: {why}. `harness aa` measures them again.",
        HarnessWarning,
        stacklevel=3,
    )


def fitting(rates: Iterable[ErrorRates], setting: Setting) -> ErrorRates | None:
    """Return the first that were measured in a setting, and in no other; None if none were."""
    fits = (one for one in rates if (one.machine, one.effort, one.env) == setting)
    return next(fits, None)


def rates_text(rates: ErrorRates | None, setting: Setting) -> str:
    """Return how often verdicts are wrong in a setting, and which slow-downs they find."""
    if rates is None:
        effort = "" if setting.effort == "default" else f" --effort {setting.effort}"
        return f"Error rates ({setting}): unknown; `harness aa --power{effort}` measures them."
    flagged, families = rates.flagged, total(rates.families.values())
    said = (
        f"Error rates ({setting}): identical arms were called different in {flagged.count} of "
        f"{flagged.of} rows (95 %: {flagged.low * 100:.2g} to {flagged.high * 100:.2g} %), in "
        f"{families.count} of {families.of} families."
    )
    power = [
        f"{one.stage} +{one.effect * 100:.3g} % in {one.found.count} of {one.found.of}"
        for one in rates.power
        if one.effort == rates.effort and one.found.of
    ]
    return f"{said} Slow-downs put in were found: {', '.join(power)}." if power else said
