"""What a machine's own A/A measurements say: how often verdicts are wrong, which effects count.

`harness aa` writes such a file per run into `results/MACHINE/aa/`. Comparisons print the rates of
their own effort and environment, or say that none are known.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import numpy as np

from harness.errors import HarnessWarning, UsageError, nearest
from harness.frame.frame import axes_key, axis_column
from harness.frame.pairs import CASE, Row, axes_of
from harness.records import json_file
from harness.records.files import OWN
from harness.records.json_file import Count, Milliseconds
from harness.records.project_tables import FILE, project_table
from harness.records.schema import plain_axes
from harness.records.store import machine_folder
from harness.stages import registry

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 2
"""Version of the layout of :class:`ErrorRates`; from 2 on it has a checksum."""

METHOD = 3
"""The way to verdicts: rates of an older one say nothing of this one."""

FOLDER = "aa"
"""Of a machine's folder in a results tree."""

QUANTILE = 0.9
"""The share of the ratios of identical arms that stays within a stage's threshold."""

LEAST_CASES = 10
"""A pair of identical arms with fewer says nothing of a whole stage."""

PRIOR = 4
"""A case's own ratios count as much as its stage once there are so many."""

_LEAST = 1e-3
"""No case is taken to scatter by less, in log time: chance brings single ratios close to 1."""

Scatter = Mapping[tuple[object, ...], float]
"""The threshold of each case, and by (machine, stage) that of all others: 0.07 is 7 % more time."""

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
    from scipy.stats import binomtest  # a second that no comparison needs

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
    """The :data:`METHOD` that judged; 1 in a file that does not say."""


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


def read(file: Path) -> ErrorRates:
    """Return what a file holds.

    Raises:
        FileNotFoundError: there is none.
        DamagedError: it cannot be used; the text says why.
    """
    rates = json_file.read(file, ErrorRates)
    if not 1 <= rates.schema <= SCHEMA:
        raise json_file.DamagedError(
            f"it has schema version {rates.schema}; this harness reads 1 to {SCHEMA}"
        )
    return rates


def stored(results: Path, machine: str, effort: str) -> list[ErrorRates]:
    """Return what is stored of a machine and an effort, best first.

    Those of all workloads come before those of some, and newer ones before older ones. Left out
    are those that an older way to judge was measured with, and, with a warning, files that cannot
    be used.
    """
    usable = []
    folder = machine_folder(results, machine) / FOLDER
    for path in sorted(folder.glob(f"*{OWN}")):
        try:
            rates = read(path)
        except json_file.DamagedError as error:
            text = f"The error rates in {path} are left out: {error}. `harness aa` measures them "
            warnings.warn(f"{text}again.", HarnessWarning, stacklevel=2)
            continue
        if rates.effort == effort and rates.method == METHOD:
            usable.append(rates)
    return sorted(usable, key=lambda rates: (rates.narrowed, -rates.started_at_ms))


def scatter_of(rates: Iterable[ErrorRates]) -> Scatter:
    """Return the thresholds that identical arms of machines ask for.

    With s = |ln ratio|, of a stage: the 90 % quantile q of s over the cases of a pair of arms, of
    several pairs the median, the lower one of two. Of a case with n ratios in that stage

        ln(1 + threshold) = q · (median s of the case / median s of the stage) ^ (n / (n + 4))

    so few ratios of its own say little, and a run that was disturbed is outvoted by the next two,
    in single cases as in the whole.

    `rates` are of one effort; another one scatters otherwise.
    """
    cases: dict[tuple[object, ...], list[float]] = defaultdict(list)
    pairs: dict[tuple[object, ...], dict[object, list[float]]] = {}
    for run, one in enumerate(rates):
        for noise in one.noise:
            stage = pairs.setdefault((one.machine, noise.stage), defaultdict(list))
            axes = {axis_column(name): value for name, value in plain_axes(noise.axes).items()}
            case = *(getattr(noise, name) for name in CASE), axes_key(axes)
            for number, ratio in enumerate(noise.ratios):
                if 0 < ratio < math.inf:
                    cases[one.machine, *case].append(abs(math.log(ratio)))
                    stage[run, number].append(abs(math.log(ratio)))
    scatter: dict[tuple[object, ...], float] = {}
    usual: dict[tuple[object, ...], float] = {}
    for name, by_pair in pairs.items():
        whole = [own for own in by_pair.values() if len(own) >= LEAST_CASES]
        if whole:
            scatter[name] = statistics.median_low(float(np.quantile(s, QUANTILE)) for s in whole)
            usual[name] = statistics.median_low(statistics.median(s) for s in whole)
    for case, own in cases.items():
        name = case[0], case[1 + CASE.index("stage")]
        if name in scatter:
            relative = max(statistics.median_low(own), _LEAST) / max(usual[name], _LEAST)
            scatter[case] = scatter[name] * relative ** (len(own) / (len(own) + PRIOR))
    return {name: math.expm1(logarithm) for name, logarithm in scatter.items()}


def use_those_of(project: Path) -> None:
    """Let what counts be what pyproject.toml says, under [tool.harness.thresholds]."""
    registry.thresholds.clear()
    here = f"{project / FILE}: [tool.harness.thresholds]"
    table = project_table(project, "thresholds")
    for stage, share in table.items():
        if stage not in registry.STAGES:
            like = nearest(stage, list(registry.STAGES))
            names = ", ".join(registry.STAGES)
            raise UsageError(f"{here} has {stage!r}, which is no stage.{like} There are: {names}.")
        if type(share) not in (int, float) or not 0 < share <= 1:
            raise UsageError(
                f"{here}: {stage} is {share!r}; expected the smallest change that counts, as a "
                "share of the time: 0.1 for 10 %, at most 1."
            )
    registry.thresholds.update(table)


def smallest_effect(scatter: Scatter, a: Row, b: Row, axes: Sequence[str]) -> float:
    """Return the smallest effect that counts between two rows: 0.05 is 5 % more time.

    It is the stage's own or the project's; or, where that is more, what the machine of a row asks
    for.
    """
    least = registry.effect(b["stage"])
    for row in (a, b) if scatter else ():
        case = (row["machine"], *(row[name] for name in CASE), axes_key(axes_of(row, axes)))
        stage = row["machine"], row["stage"]
        least = max(least, scatter.get(case, scatter.get(stage, 0.0)))
    return least
