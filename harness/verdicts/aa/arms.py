"""The arms of an A/A run: whole sweeps, one after the other, each with records of its own.

What has been measured is known from the records, so the same call goes on where one was stopped.
"""

from __future__ import annotations

import dataclasses
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.frame.frame import INSTRUMENTS
from harness.measure.context import Context, Options
from harness.measure.estimate import Expected
from harness.measure.lock import measuring
from harness.measure.outcome import Outcome, Progress, warn
from harness.measure.sweep import sweep
from harness.records.schema import Record, case_of, digest
from harness.records.store import machine_folder
from harness.stages.injection import Injected, name
from harness.stages.registry import CASE_STAGES as LENGTHENED
from harness.stages.registry import STAGES, stage_of, values_ns
from harness.verdicts.error_rates import FOLDER
from harness.workload.workload import Workload

SCENARIO = "off"
"""The state of the persistent cache in which error rates are measured."""

Effects = dict[str, float]
"""Stage to slow-down: 0.2 for a fifth more time."""

Records = list[Record]


@dataclass(frozen=True)
class Arms:
    """The records of a run's arms, and what measuring them was like."""

    pairs: list[tuple[Records, Records]]
    """Identical arms, the second measured right after the first."""
    injected: list[tuple[Effects, Records]]
    """Arms with slow-downs, measured right after the second arm of the last pair."""
    measured: int
    """Records that were measured now."""
    reused: int
    failed: int
    """Records of cases that failed or were refused."""


def usual_effects(effort: str) -> Effects:
    """Return the slow-downs that stages name for an effort."""
    return {stage.name: stage.power[effort] for stage in STAGES.values() if effort in stage.power}


def injections(given: Sequence[str], effort: str) -> list[Effects]:
    """Return the slow-downs of each arm to measure: `given` as STAGE=EFFECT, or the usual ones.

    Stages do not disturb each other, so one arm has one slow-down of every stage.
    """
    if not given:
        efforts = ["default", *(["thorough"] if effort == "thorough" else [])]
        return [usual_effects(one) for one in efforts]
    arms: list[Effects] = []
    for text in given:
        stage, _, value = text.partition("=")
        try:
            effect = float(value)
        except ValueError:
            effect = 0.0
        if stage not in LENGTHENED or not 0 < effect <= 100:
            raise UsageError(
                f"--effect {text!r}: expected STAGE=EFFECT, such as compile=0.2 for a fifth more "
                f"time; the stages are {', '.join(LENGTHENED)}."
            )
        arm = next((arm for arm in arms if stage not in arm), None)
        if arm is None:
            arms.append(arm := {})
        arm[stage] = effect
    return arms


def folder_of(results: Path, machine: str) -> Path:
    """Return where a machine's A/A runs are."""
    return machine_folder(results, machine) / FOLDER


def name_of_run(
    context: Context, effort: str, given: str = "", chosen: Sequence[Sequence[str]] = ()
) -> str:
    """Return the name of a run: the one `given`, else made of commit, environment and effort.

    What was `chosen` to be measured (workloads, cases, targets) is part of it, so that a look at
    one workload does not replace what is known of all.
    """
    if given and not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.-]{0,79}", given):
        raise UsageError(
            f"{given!r} is no name for a run: expected letters, digits, dots and hyphens, such as "
            "2026-11-20."
        )
    some = [digest(*chosen)[:8]] if any(chosen) else []
    return given or "-".join([context.commit.hash[:8] or "nocommit", context.env, effort, *some])


def measure(
    workloads: Sequence[type[Workload]],
    context: Context,
    options: Options,
    run: str,
    pairs: int,
    injections: Sequence[Effects],
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Arms:
    """Measure `pairs` pairs of identical arms, then one arm for each of `injections`.

    `context` is of the results tree; the arms' records go to `aa/records/RUN/ARM` below its
    machine's folder, where :func:`harness.load` does not look. The arms differ in nothing but the
    time at which they are measured.
    """
    place = folder_of(context.results, context.machine) / "records" / run
    arms = 2 * pairs + len(injections)
    outcomes: list[Outcome] = []
    took_s: list[float] = []
    steps = [0]  # of each arm that is done, and of the one at hand

    def arm(label: str, injected: Injected | None = None) -> Records:
        seed = options.seed
        if seed is not None:
            seed = random.Random(f"{seed}/{label}").getrandbits(31)
        before, left, began = sum(steps), arms - len(outcomes), time.monotonic()
        others_s = (left - 1) * statistics.fmean(took_s) if took_s else None

        def tell(message: Progress) -> None:
            """Tell the progress over all arms, each as long as the one at hand."""
            if message.expected and outcomes:
                return  # what was expected of the first arm was of all
            steps[-1], left_s = message.done, message.left_s
            on_progress(
                dataclasses.replace(
                    message,
                    workload=f"{label}: {message.workload}",
                    done=before + message.done,
                    total=before + message.total * left,
                    expected=message.expected and Expected(left * message.expected.records, 0, 0),
                    left_s=None if left_s is None or others_s is None else left_s + others_s,
                )
            )

        outcome = sweep(
            workloads,
            dataclasses.replace(context, results=place / label.replace(" ", "-")),
            dataclasses.replace(options, scenarios=(SCENARIO,), injected=injected, seed=seed),
            tell,
            earlier=context.store.path.parent,
        )
        outcomes.append(outcome)
        if outcome.measured and not outcome.reused:
            took_s.append(time.monotonic() - began)
        steps.append(0)
        return outcome.records

    with measuring(warn(on_progress), options.wait):  # nobody else between two arms either
        identical = [(arm(f"pair {n} a"), arm(f"pair {n} b")) for n in range(1, pairs + 1)]
        injected = []
        medians = medians_ns(identical[-1][1]) if injections else {}
        for effects in injections:
            label = "injected " + " ".join(f"{stage}-{size:g}" for stage, size in effects.items())
            injected.append((effects, arm(label, Injected(effects, medians))))
    return Arms(
        identical,
        injected,
        measured=sum(outcome.measured for outcome in outcomes),
        reused=sum(outcome.reused for outcome in outcomes),
        failed=sum(len(outcome.failed) for outcome in outcomes),
    )


def medians_ns(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Return the median over processes of every case, by stage: what an injection is sized by.

    CPU time, for the stages of which verdicts rest on it.
    """
    taken: dict[str, dict[str, list[float]]] = {}
    for record in records:
        if record.workload in INSTRUMENTS:
            continue
        values = taken.setdefault(name(record.workload, case_of(record).id), {})
        for stage, ns in values_ns(record.stages).items():
            cpu_ns = record.stages[stage].cpu_ns if STAGES[stage].clock == "cpu" else []
            value = stage_of(stage).cpu_statistic(cpu_ns) if cpu_ns else ns
            values.setdefault(stage, []).append(value)
    return {
        case: {stage: statistics.median(values) for stage, values in of_case.items()}
        for case, of_case in taken.items()
    }
