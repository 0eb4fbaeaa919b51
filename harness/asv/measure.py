"""Measure for asv what it was asked for, and answer; do the work that its profiler is to see."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax

from harness import targets
from harness.asv.call import AsvCall, end_with
from harness.asv.metrics import Answer, answers
from harness.asv.project import CONFIGURATIONS, AsvProject
from harness.errors import UsageError
from harness.jaxhooks.evidence import Evidence
from harness.jaxhooks.temporary import temporary_folder
from harness.measure.context import Context, Options
from harness.measure.sweep import sweep
from harness.output.asv import line
from harness.records import environment
from harness.records.environment import env_name, machine_name
from harness.records.git import Commit, commit_of
from harness.stages.passes import Pass
from harness.stages.prepared import prepare
from harness.stages.registry import CASE_STAGES, STAGES
from harness.stages.scenarios.registry import SCENARIOS
from harness.workload.workload import SEVERAL_DEVICES, Case, Workload, name_of


def measure(workload: type[Workload]) -> Answer:
    """Measure every case that asv asks for, unless that is done already; return the answers."""
    call = AsvCall.current()
    if call.profile == "profile":
        return {"cases": {}, "process": {}}  # the reader does the work
    if call.pid:
        end_with(call.pid)
    elif Path(sys.argv[0]).parts[-2:] == ("asv", "benchmark.py"):
        print(line("no-plugin"), file=sys.stderr)
        call = dataclasses.replace(call, since_ms=int(time.time() * 1000))
    home = Path(inspect.getsourcefile(workload) or ".").resolve().parent
    folders = [Path(call.folder)] if call.folder else [home, *home.parents]
    names = [Path(call.config).name] if call.config else CONFIGURATIONS
    project = AsvProject.find(folders, names)
    in_tree, repo = (project.results, project.repo) if project else (home.parent / "results", home)
    with temporary_folder() as nowhere:
        results = Path(os.environ.get("HARNESS_RESULTS") or in_tree)
        if call.dry_run:
            results = Path(nowhere)
        options = Options(
            call.effort,
            keep=functools.partial(call.selects, workload),
            first_calls=_number("HARNESS_FIRST_CALLS"),
            fresh=_wanted("HARNESS_FRESH"),
            since_ms=max(call.since_ms, call.answered_ms.get(name_of(workload), 0)),
            keep_programs=_wanted("HARNESS_KEEP_PROGRAMS"),
            inside=_wanted("HARNESS_INSIDE"),
        )
        context = Context(
            results,
            call.machine or machine_name(),
            env_name(),
            _commit(call, repo, in_tree),
            environment.night(os.environ.get(environment.NIGHT, "")),
        )
        if call.process is None:
            return answers(workload, sweep([workload], context, options).records)
        return _one_round(workload, context, options, call.process)


def _one_round(
    workload: type[Workload], context: Context, options: Options, process: int
) -> Answer:
    """Measure one process of each case, and answer for it alone.

    Those before it, of this call of asv, are in its hands. What the others have and this one lacks,
    such as a first call that fewer processes take, is no sample more: nothing would have asv forget
    the others.
    """
    effort = dataclasses.replace(options.effort, processes=process + 1, limit=process + 1)
    records = sweep([workload], context, dataclasses.replace(options, effort=effort)).records
    own = [one for one in records if one.replicate.endswith(f"#{process}")]
    every, now = answers(workload, records), answers(workload, own)
    pairs = [(now["cases"].setdefault(case, {}), one) for case, one in every["cases"].items()]
    for of_now, of_all in [*pairs, (now["process"], every["process"])]:
        for metric, answer in of_all.items():
            if "samples" not in of_now.get(metric, {}):
                of_now[metric] = {"samples": [], "number": 1} if "samples" in answer else answer
    return now


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    if text and not text.isdecimal():
        raise UsageError(f"{variable} is {text!r}; expected a number of processes, 0 for none.")
    return int(text) if text else None


def _wanted(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


def _commit(call: AsvCall, repo: Path, results: Path) -> Commit:
    built = os.environ.get("ASV_COMMIT")  # set in the environments that asv makes
    head = commit_of(repo, exclude=results)
    measured = commit_of(repo, built or call.commit or "HEAD")
    return (
        head if measured.hash == head.hash else measured if measured.hash else Commit(built or "")
    )


def work_of(workload: type[Workload], case: Case, stage: str) -> Callable[[], float]:
    """Do what comes before a stage in this process, and return what takes the stage once.

    That is the stage as it is measured, the loop over calls of `execute` included; it returns the
    seconds that took. Where there is nothing for a profiler to see, it says so instead.
    """
    nothing = ""
    if stage not in CASE_STAGES:
        nothing = line("no-work", stage=stage, stages=", ".join(CASE_STAGES))
    elif targets.find(case.target).compile_only:
        nothing = line("compile-only", target=case.target)
    if nothing:
        print(nothing, file=sys.stderr)
        return lambda: 0.0
    jax.config.update("jax_platforms", targets.find(case.target).platforms)
    if workload.x64:
        jax.config.update("jax_enable_x64", True)
    if case.transform in SEVERAL_DEVICES:
        jax.config.update("jax_num_cpu_devices", targets.virtual_cpu_devices())
    jax.clear_caches()
    made = Pass(
        prepare(workload, case, None), Evidence(), SCENARIOS["off"], None, lambda name: None
    )
    for name in CASE_STAGES[: CASE_STAGES.index(stage)]:
        made.take(STAGES[name])

    def work() -> float:
        begin = time.perf_counter()
        made.take(STAGES[stage])
        return time.perf_counter() - begin

    return work
