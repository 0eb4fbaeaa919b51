"""Which part of a compile became slower or faster from one release of JAX to the next.

    python -m tests.performance.compile_releases docs/compile-releases.md --python A --python B ...

Each interpreter compiles the committed suite, the last case of each workload and transform, for
each target: twice without events, for its CPU seconds, of which the least count; and twice under
XLA's own events, which say what shares of it go where: those of the quicker of the two. So the
figures of groups are shares of measured CPU seconds. Times depend little on what else runs, and
are no wall times. What is measured is kept as JSON in `--keep FOLDER`, for a second call to find.
One process for tpu:v5e grows beyond 3 GB, so that target is made only where `--target` names it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import jax
import msgspec

from harness import targets
from harness.declare import discovery
from harness.declare.workload import SEVERAL_DEVICES, enumerate_cases, name_of, skip_reason
from harness.program.compiler.inside import inside
from harness.program.compiler.recording import recorded
from harness.program.compiler.times import compile_times
from harness.program.compiler.tree import GROUPS
from harness.records.printable import table_lines
from harness.stages.build import Build
from harness.stages.prepared import prepare
from harness.targets import topologies

TARGETS = ("cpu", "gpu:h200")
ROUNDS = 2
MOST_CASES = 8
LEAST_S = 0.02
"""CPU seconds of all cases that a group must have in some release to be shown."""


def chosen(target):
    """Yield the cases that are compiled: the last of each workload and transform."""
    for workload in discovery.discover(Path("benchmarks")).workloads:
        last = {}
        for case in enumerate_cases(workload, [target]):
            if case.transform not in SEVERAL_DEVICES and not skip_reason(workload, case):
                last[case.transform] = case
        for case in last.values():
            yield workload, case


def cpu():
    """Return the CPU seconds of this process, and of `ptxas` and others that it has started."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime


def measure(target, description):
    """Print a line of JSON for each case."""
    topology = topologies.describe(target, description) if description else None
    one = topology.one if topology else None
    first = jax.jit(lambda x: x + 1)
    first.lower(jax.ShapeDtypeStruct((8,), "float32", sharding=one)).compile()
    for workload, case in chosen(target):
        try:
            jax.config.update("jax_enable_x64", workload.x64)
            prepared = prepare(workload, case, topology)
            cpu_s, told = [], []
            for _ in range(ROUNDS):
                for traced in (False, True):
                    jax.clear_caches()
                    build = Build.of(prepared)
                    build.lower()
                    begin = cpu()
                    if traced:
                        told.append(inside(recorded(build.compile), ""))
                    else:
                        build.compile()
                        cpu_s.append(cpu() - begin)
            best = min(told, key=lambda each: each.threads_s)
        except Exception as error:
            print(f"{name_of(workload)} {case.label}: {error}"[:200], file=sys.stderr)
            continue
        found = {
            "case": " ".join(filter(None, (name_of(workload), case.label))),
            "cpu_s": min(cpu_s),
            "kernels": len(best.kernels),
            "covered": best.covered,
            "times": msgspec.to_builtins(compile_times(best)),
        }
        print(json.dumps(found), flush=True)


def asked(python, target, keep):
    """Return what an interpreter measures for a target: its release of JAX, and the cases."""
    place = targets.find(target)
    file = keep / f"{Path(python).parents[1].name}-{target.replace(':', '-')}.json"
    if not file.exists():
        variables = {"JAX_PLATFORMS": place.platforms, **place.environment}
        done = subprocess.run(
            [python, "-m", __spec__.name, "-", "--child", target, place.description or ""],
            env={**os.environ, **variables, "JAX_ENABLE_COMPILATION_CACHE": "0"},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        version = [python, "-c", "import importlib.metadata as m; print(m.version('jaxlib'))"]
        jaxlib = subprocess.run(version, capture_output=True, check=True, text=True).stdout.strip()
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        file.write_text(json.dumps({"release": jaxlib, "cases": lines}))
    return json.loads(file.read_text())


def seconds(case):
    """Return the CPU seconds of a case's compile by group and part."""
    groups = case["times"]["groups"]
    whole = sum(one.get("threads_s", 0) for one in groups)
    return {
        (one["group"], one.get("part", "")): case["cpu_s"] * one.get("threads_s", 0) / whole
        for one in groups
    }


def page(target, releases):
    """Yield the lines of the page for one target."""
    names = [release["release"] for release in releases]
    shared = set.intersection(*({one["case"] for one in each["cases"]} for each in releases))
    cases = [
        {one["case"]: one for one in each["cases"] if one["case"] in shared} for each in releases
    ]
    sums = [defaultdict(float) for _ in releases]
    for total, release in zip(sums, cases, strict=True):
        for one in release.values():
            for key, value in seconds(one).items():
                total[key] += value
    rows = []
    for key in sorted(
        {key for each in sums for key in each}, key=lambda k: (GROUPS.index(k[0]), k)
    ):
        values = [each[key] for each in sums]
        if max(values) >= LEAST_S:
            rows.append([": ".join(filter(None, key)), *map(_s, values), _change(values)])
    values = [sum(each.values()) for each in sums]
    rows.append(["all", *map(_s, values), _change(values)])
    counts = [sum(one["kernels"] for one in each.values()) for each in cases]
    rows.append(["kernels, as events name them (a number)", *map(str, counts), _change(counts)])
    yield from (f"## {target}", "")
    yield f"{len(shared)} programs; CPU seconds, and the change from {names[0]} to {names[-1]}."
    yield ""
    yield from table_lines(["group", *(f"jaxlib {name}" for name in names), "change"], rows)
    yield from ("", f"The programs that changed most from {names[0]} to {names[-1]}:", "")
    yield from table_lines(["program", *names, "most of it in"], list(_cases(cases)))
    yield ""


def _cases(cases):
    before, after = cases[0], cases[-1]
    order = sorted(before, key=lambda name: -abs(after[name]["cpu_s"] - before[name]["cpu_s"]))
    for name in order[:MOST_CASES]:
        old, new = seconds(before[name]), seconds(after[name])
        changes = {key: new.get(key, 0.0) - old.get(key, 0.0) for key in {**old, **new}}
        key = max(changes, key=lambda one: abs(changes[one]))
        said = f"{': '.join(filter(None, key))} {changes[key] * 1e3:+.0f} ms"
        yield [name, *(_s(each[name]["cpu_s"]) for each in cases), said]


def _s(value):
    return f"{value:.2f} s"


def _change(values):
    return f"{values[-1] / values[0] - 1:+.0%}" if values[0] else "new"


HEAD = """\
# Compiling with three releases of JAX

Which part of XLA's work became slower or faster, for the committed suite (`benchmarks/`, the last
case of each workload and transform; what needs several devices is left out). A table per target;
the GPU is compiled for on a machine that has none.

The seconds are CPU seconds of the compiling process and of those that it starts (`ptxas`), the
least of {rounds} compiles of each program, summed over programs. They are split among groups as the
seconds of XLA's threads are in a compile under XLA's own events
([groups](cookbook.md#why-does-one-function-take-so-long-to-compile)). Each release runs in one
process per target, one after the other, and other work went on: changes of a few percent say
nothing. The oldest release runs on another Python, which compiling hardly meets.

Made by `python -m tests.performance.compile_releases`, which says what it takes.

"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--python", action="append", help="of each release, the oldest first")
    parser.add_argument("--target", action="append")
    parser.add_argument("--keep", type=Path, default=Path(".compile-releases"))
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child:
        measure(*given.child)
        return
    given.keep.mkdir(parents=True, exist_ok=True)
    lines = []
    for target in given.target or TARGETS:
        lines += page(target, [asked(python, target, given.keep) for python in given.python])
    given.page.write_text(HEAD.format(rounds=ROUNDS) + "\n".join(lines))


if __name__ == "__main__":
    main()
