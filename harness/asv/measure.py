"""Measure for asv what it was asked for, and answer."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import tempfile
import threading
import time
from pathlib import Path

import psutil

from harness.asv.answers import Answer, answers
from harness.asv.call import AsvCall, asv_call
from harness.asv.project import CONFIGURATIONS, AsvProject
from harness.declare.workload import Workload
from harness.engine.context import Context, Options
from harness.engine.sweep import sweep
from harness.errors import UsageError
from harness.records import environment
from harness.records.environment import env_name, machine_name
from harness.records.git import Commit, commit_of
from harness.stages import sampling


def end_with(asv: psutil.Process) -> None:
    """End this process when `asv` is gone: killed, it leaves its children to measure on."""

    def watch() -> None:
        with contextlib.suppress(psutil.Error):
            while asv.is_running() and asv.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def measure(workload: type[Workload]) -> Answer:
    """Measure every case that asv asked for, unless that is done already; return the answers."""
    call, asv = asv_call()
    if asv is not None:
        end_with(asv)
    home = Path(inspect.getsourcefile(workload) or ".").resolve().parent
    # asv works in the folder of its configuration.
    folders = [home, *home.parents] if asv is None else [Path(asv.cwd())]
    names = [Path(call.config).name] if call.config else CONFIGURATIONS
    project = AsvProject.find(folders, names)
    in_tree, repo = (project.results, project.repo) if project else (home.parent / "results", home)
    with tempfile.TemporaryDirectory(prefix="harness-") as nowhere:
        results = Path(os.environ.get("HARNESS_RESULTS") or in_tree)
        if call.dry_run:
            results = Path(nowhere)
        effort = os.environ.get("HARNESS_EFFORT") or ("quick" if call.quick else "default")
        options = Options(
            sampling.effort(effort),
            keep=functools.partial(call.selects, workload),
            first_calls=_number("HARNESS_FIRST_CALLS"),
            fresh=_wanted("HARNESS_FRESH"),
            keep_programs=_wanted("HARNESS_KEEP_PROGRAMS"),
            inside=_wanted("HARNESS_INSIDE"),
        )
        context = Context(
            results,
            call.machine or machine_name(),
            env_name(),
            _commit(call, repo, in_tree),
            environment.night(os.environ.get("HARNESS_NIGHT", "")),
        )
        return answers(workload, sweep([workload], context, options).records)


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
    found = commit_of(repo, built or call.commit or "HEAD")
    return head if found.hash == head.hash else found if found.hash else Commit(built or "")
