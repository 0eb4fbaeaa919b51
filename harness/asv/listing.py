"""What asv lists of several machines and environments; lives in asv's own process.

A machine measures the targets that it can have, and its results hold no others, while
`benchmarks.json` is common to all machines: it lists what any of them has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from asv.benchmarks import Benchmarks
from asv.commands.compare import Compare
from asv.commands.show import Show
from asv.console import log
from asv.machine import iter_machine_files
from asv.repo import NoSuchNameError, get_repo
from asv.results import iter_results_for_machine_and_hash
from asv.util import UserError, load_json

_save = Benchmarks.save
_print_benchmark = Show._print_benchmark
_compare = Compare.run


def with_targets_of(benchmark: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return a benchmark with the targets that are listed already, of those it has still."""
    before = known.get(benchmark["name"], {}).get("params") or [[]]
    names, params = benchmark.get("param_names", []), benchmark.get("params")
    if not params or names[-1:] != ["target"] or "harness_targets" not in benchmark:
        return benchmark
    every = {*params[-1], *before[-1]}
    own = [target for target in benchmark["harness_targets"] if target in every]
    return {**benchmark, "params": [*params[:-1], own]}


def _save_all(self: Any) -> None:
    try:
        known = Benchmarks.load(self._conf)._all_benchmarks
    except UserError:
        known = {}
    measured = self._all_benchmarks
    listed = {name: with_targets_of(one, known) for name, one in measured.items()}
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
    if not options.get("env_spec"):
        before, after = (_environments(conf, name, options) for name in (hash_1, hash_2))
        for name in sorted(before ^ after) if before & after else ():
            log.warning(f"{name} is left out: only {hash_1 if name in before else hash_2} has it")
        options["env_spec"] = sorted(before & after)
    return _compare(conf=conf, hash_1=hash_1, hash_2=hash_2, **options)


def _environments(conf: Any, commit: str, options: Mapping[str, Any]) -> set[str]:
    machines = [load_json(path)["machine"] for path in iter_machine_files(conf.results_dir)]
    machine = options.get("machine") or (machines[0] if len(machines) == 1 else "")
    if not machine:
        return set()  # asv says so
    with contextlib.suppress(NoSuchNameError):
        commit = get_repo(conf).get_hash_from_name(commit)
    found = iter_results_for_machine_and_hash(conf.results_dir, machine, commit)
    return {result.env_name for result in found}


def install() -> None:
    """Change asv's commands in place."""
    Benchmarks.save = _save_all
    Show._print_benchmark = _print_own
    Compare.run = _compare_common
