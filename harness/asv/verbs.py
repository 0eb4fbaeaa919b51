"""What each verb and option of asv asks of the harness, and what asv lists; in its own process.

asv 0.6.6 tells a `setup_cache` nothing: whether samples are to be appended to older ones, which
round it is, what has been stored before. All verbs that measure call `run_benchmarks`, which is
told all of it, and which is wrapped here.

A machine measures the targets that it can have, and its results hold no others, while
`benchmarks.json` is common to all machines: it lists what any of them has.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import asv.runner
from asv.benchmarks import Benchmarks
from asv.commands import asv_profiling, find, make_argparser, run
from asv.commands.compare import Compare
from asv.commands.show import Show
from asv.console import log
from asv.machine import iter_machine_files
from asv.repo import NoSuchNameError, get_repo
from asv.results import iter_results_for_machine_and_hash
from asv.util import UserError, load_json, long_path_rmtree

from harness.asv.call import SETUP, AsvCall
from harness.asv.project import CONFIGURATIONS, AsvProject
from harness.errors import HarnessError
from harness.output.asv import line
from harness.records.environment import NIGHT, recorded_env_name
from harness.records.units import some

MOST_WORKLOADS = 1000
"""Of more, children are not told by workload: all that they are told is one variable."""

ANEW = ("continuous", "find", "profile")
"""Verbs that ask for a measurement, whatever there is already."""

_save = Benchmarks.save
_print_benchmark = Show._print_benchmark
_compare = Compare.run


def call_of(arguments: Sequence[str], now_ms: int) -> AsvCall:
    """Read what stands after `asv` on a command line; an empty call if asv would not accept it."""
    silent = io.StringIO()
    try:
        with contextlib.redirect_stderr(silent), contextlib.redirect_stdout(silent):
            given = vars(make_argparser()[0].parse_args(arguments))
    except SystemExit:
        return AsvCall()
    verb = getattr(given.get("func"), "__self__", type(None)).__name__.lower()
    # None, from `continuous`: wherever that is possible, which is wherever it can run.
    interleave = given.get("interleave_rounds", False) in (None, True)
    # asv's subcommands have different options, and `profile` has one benchmark, not several.
    bench = given.get("bench") or given.get("benchmark") or ()
    return AsvCall(
        config=given.get("config") or "",
        quick=bool(given.get("quick")),
        dry_run=bool(given.get("dry_run") or given.get("skip_save")),
        machine=given.get("machine") or "",
        commit=given.get("set_commit_hash") or "",
        bench=(bench,) if isinstance(bench, str) else tuple(bench),
        interleave=interleave,
        processes=int((given.get("attribute") or {}).get("rounds", 0)),
        profile=verb if verb == "profile" else "run" if given.get("profile") else "",
        since_ms=now_ms if verb in ANEW or interleave or given.get("append_samples") else 0,
    )


def install() -> None:
    """Tell what this asv starts what it was called with; change its commands in place."""
    now_ms = int(time.time() * 1000)
    call = replace(call_of(sys.argv[1:], now_ms), pid=os.getpid(), folder=os.getcwd())
    call.announce()
    rounds: Counter[tuple[str, str]] = Counter()
    for module in (run, find, asv_profiling):
        module.run_benchmarks = _telling(module.run_benchmarks, call, rounds)
    asv.runner.ForkServer = _Server
    Benchmarks.save = _save_all
    Show._print_benchmark = _print_own
    Compare.run = _compare_common


def _telling(
    run_benchmarks: Callable[..., Any], call: AsvCall, rounds: Counter[tuple[str, str]]
) -> Callable[..., Any]:
    """Wrap asv's function: tell what of it a `setup_cache` has to know.

    `rounds` counts the interleaved rounds of each commit and environment.
    """
    warned: list[str] = []

    @functools.wraps(run_benchmarks)
    def wrapper(benchmarks: Any, env: Any, results: Any = None, **options: Any) -> Any:
        ours = {
            name: one["harness_workload"]
            for name, one in benchmarks.items()
            if "harness_workload" in one
        }
        if call.interleave:
            where = results.commit_hash, env.name
            now = replace(call, process=rounds[where])
            rounds[where] += 1
        else:
            options["extra_params"] = _rounds_apart(benchmarks, ours, options.get("extra_params"))
            now = call
        if results is not None and not call.since_ms:
            answered_ms = _answered_ms(ours, results, benchmarks)
            if not results.commit_hash:  # asv stores nothing
                now = replace(now, since_ms=int(time.time() * 1000))
            elif len(answered_ms) > MOST_WORKLOADS:
                now = replace(now, since_ms=max(answered_ms.values()))
            else:
                now = replace(now, answered_ms=answered_ms)
        now.announce()
        if not warned:  # asv measures several commits and environments
            warned.append(_not_that_commit(call))
            if warned[0]:
                log.warning(warned[0])
        if not ours:
            return run_benchmarks(benchmarks, env, results=results, **options)
        began_ms = int(time.time() * 1000)
        _Server.workloads = ours
        with _alone():
            done = run_benchmarks(benchmarks, env, results=results, **options)
        if reason := _why_nothing(benchmarks, done):
            log.error(line("nothing-measured", reason=reason))
        if results is not None and not now.since_ms:
            measured = set(ours.values()) - set(now.answered_ms)
            if reused := _reused(call, env, done, measured, began_ms):
                log.warning(line("reused", workloads=some(reused, 5)))
        return done

    return wrapper


class _Server(asv.runner.ForkServer):  # type: ignore[misc]
    """asv's forkserver. It has imported every benchmark, and JAX: a workload's `setup_cache` too.

    asv 0.6.6 starts an interpreter for each, which imports all of that again.
    """

    workloads: Collection[str] = ()
    """The benchmarks of workloads; others have their `setup_cache` where asv runs it."""

    def create_setup_cache(
        self, benchmark_id: str, timeout: float, params_str: str
    ) -> tuple[str | None, str | None]:
        """Return the folder of what a `setup_cache` returned, or None and why there is none."""
        if benchmark_id not in self.workloads:
            made: tuple[str | None, str | None] = super().create_setup_cache(
                benchmark_id, timeout, params_str
            )
            return made
        folder = tempfile.mkdtemp()
        params = json.dumps({**json.loads(params_str), SETUP: True})
        try:
            out, code = self.run(benchmark_id, params, "None", os.devnull, timeout, folder)
        except KeyboardInterrupt:  # as asv does it where it is a reader's
            self.interrupt()
            long_path_rmtree(folder, True)
            raise UserError("Interrupted.") from None
        if code == 0:
            return folder, None
        long_path_rmtree(folder, True)
        return None, f"{out}\nasv: setup_cache failed (exit status {code})".strip()


def _not_that_commit(call: AsvCall) -> str:
    """Return how what is measured differs from the commit that it is filed under; "" if it fits.

    The benchmarks have to be in the repository of that commit: with `repo` another project, such as
    JAX, nobody but the user knows.
    """
    from harness.records import git  # not for plain benchmarks

    project = _project(call) if call.commit else None
    if project is None or not project.benchmarks.resolve().is_relative_to(project.repo.resolve()):
        return ""
    named = git.commit_of(project.repo, call.commit).hash
    top = git.top_of(project.repo)
    if not named or top is None:
        return ""
    pathspec = ["."]
    if project.results.resolve().is_relative_to(top):
        pathspec.append(f":(exclude,literal){project.results.resolve().relative_to(top)}")
    changed = git.output(top, "diff", "--name-only", named, "--", *pathspec).splitlines()
    if not changed:
        return ""
    return line("other-commit", commit=named[:8], files=some(changed, 3))


def _project(call: AsvCall) -> AsvProject | None:
    return AsvProject.find(
        [Path(call.folder)], [Path(call.config).name] if call.config else CONFIGURATIONS
    )


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Hold this machine while asv's children measure on it, and say here for whom it waits.

    What asv's children print is only shown where one of them fails.

    Raises:
        UserError: others measure, and HARNESS_WAIT=0 says not to wait.
    """
    from harness.measure import lock  # asv of plain benchmarks does not pay for it

    def say(text: str) -> None:
        log.warning(f"harness: {text}")
        sys.stdout.flush()  # it may wait for long

    with contextlib.ExitStack() as held:
        try:
            held.enter_context(lock.measuring(say))
        except HarnessError as error:
            raise UserError(f"harness: {error}") from None
        _, variables = lock.for_children()
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({name: value} if value is not None else {})


def _why_nothing(benchmarks: Any, done: Any) -> str:
    """Return in a line why no benchmark of a run has a result; "" where one has."""
    reasons: Counter[str] = Counter()
    for name, benchmark in benchmarks.items():
        if not done.errcode.get(name):
            values = done.get_result_value(name, benchmark["params"])
            if any(value is not None and value == value for value in values):
                return ""
            continue
        lines = [line.strip() for line in (done.stderr.get(name) or "").splitlines()]
        errors = [line for line in lines if re.match(r"[\w.]*(Error|Failed|Exception)\b", line)]
        last = [line for line in lines if line and not line.startswith("asv:")][-1:]
        reasons.update((errors or last or lines)[-1:])
    if not reasons:
        return ""
    ((reason, count),) = reasons.most_common(1)
    plain = reason.removeprefix("harness.asv.suite.MeasurementFailed: ")
    more = f" ({count} of {reasons.total()} benchmarks)" if len(reasons) > 1 else ""
    return f"{plain}{more}"


def _reused(
    call: AsvCall, env: Any, done: Any, workloads: Collection[str], began_ms: int
) -> list[str]:
    """Return the workloads of which asv had no result, and all records are older than this run."""
    from harness.records.store import Store, store_path  # the same

    project = _project(call)
    machine = call.machine or done.params.get("machine") or ""
    if project is None or not done.commit_hash or not machine:
        return []
    night = os.environ.get(NIGHT, "")
    name = recorded_env_name(env.name, env.env_vars)
    results = Path(os.environ.get("HARNESS_RESULTS") or project.results)
    newest: dict[str, float] = {}
    for record in Store(store_path(results, machine, done.commit_hash, name, night)).read():
        if record.workload in workloads:
            at_ms = max(record.started_at_ms, newest.get(record.workload, 0))
            newest[record.workload] = at_ms
    return sorted(workload for workload, at_ms in newest.items() if at_ms < began_ms)


def _rounds_apart(
    benchmarks: Any, ours: Mapping[str, str], given: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Keep `-a rounds=N` from readers, which would give the same processes N times.

    A `setup_cache` measures N processes for it; other benchmarks get their rounds from asv.
    """
    kept = dict(given or {})
    if rounds := kept.pop("rounds", None):
        for name, benchmark in benchmarks.items():
            benchmark["rounds"] = 1 if name in ours else rounds
    return kept


def _answered_ms(ours: Mapping[str, str], results: Any, benchmarks: Any) -> dict[str, int]:
    """Return, by workload, when asv last stored a result of what it now asks for again.

    What was measured before is in asv's hands. What was measured after it belongs to a run that
    was stopped, and answers now.
    """
    answered: dict[str, int] = {}
    for name in results.get_result_keys(benchmarks):
        at_ms = results.started_at.get(name)
        if name in ours and at_ms:
            answered[ours[name]] = max(at_ms, answered.get(ours[name], 0))
    return answered


def with_targets_of(benchmark: dict[str, Any], listed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a benchmark with the targets that are listed already, of those it has still."""
    before = listed.get(benchmark["name"], {}).get("params") or [[]]
    names, params = benchmark.get("param_names", []), benchmark.get("params")
    if not params or names[-1:] != ["target"] or "harness_targets" not in benchmark:
        return benchmark
    every = {*params[-1], *before[-1]}
    own = [target for target in benchmark["harness_targets"] if target in every]
    return {**benchmark, "params": [*params[:-1], own]}


def _save_all(self: Any) -> None:
    try:
        earlier = Benchmarks.load(self._conf)._all_benchmarks
    except UserError:
        earlier = {}
    measured = self._all_benchmarks
    listed = {name: with_targets_of(one, earlier) for name, one in measured.items()}
    self._all_benchmarks = listed
    try:
        _save(self)
    finally:
        self._all_benchmarks = measured


def _print_own(machine: str, result: Any, benchmark: Any, **options: Any) -> None:
    """Show the parameters that a result has: asv would call those of other machines failed."""
    own = result.get_result_params(benchmark["name"])
    _print_benchmark(machine, result, {**benchmark, "params": own}, **options)


def _compare_common(conf: Any, hash_1: str, hash_2: str, **options: Any) -> Any:
    """Compare the environments that both commits have; asv lists those of one, all `n/a`."""
    before, after = (_by_environment(conf, name, options) for name in (hash_1, hash_2))
    both = before.keys() & after.keys()
    if not options.get("env_spec"):
        for name in sorted(before.keys() ^ after.keys()) if both else ():
            only = hash_1 if name in before else hash_2
            log.warning(line("one-side", name=name, commit=only))
        options["env_spec"] = sorted(both)
    done = _compare(conf=conf, hash_1=hash_1, hash_2=hash_2, **options)
    if options.get("only_changed"):
        again = {name for env in both for name in _works_again(before[env], after[env])}
        if again:
            names = some(sorted(again), 5)
            log.warning(line("works-again", names=names, before=hash_1, after=hash_2))
    return done


def _works_again(before: Any, after: Any) -> Iterator[str]:
    """Yield the benchmarks of which a case failed before, and has a value after."""
    for name in {*before.get_all_result_keys()} & {*after.get_all_result_keys()}:
        params = after.get_result_params(name)
        values = (one.get_result_value(name, params) for one in (before, after))
        if any(a is None and b is not None and b == b for a, b in zip(*values, strict=True)):
            yield name


def _by_environment(conf: Any, commit: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return asv's results of a commit by environment."""
    machines = [load_json(path)["machine"] for path in iter_machine_files(conf.results_dir)]
    machine = options.get("machine") or (machines[0] if len(machines) == 1 else "")
    if not machine:
        return {}  # asv says so
    with contextlib.suppress(NoSuchNameError):
        commit = get_repo(conf).get_hash_from_name(commit)
    results = iter_results_for_machine_and_hash(conf.results_dir, machine, commit)
    return {result.env_name: result for result in results}
