"""Which part of a compile became slower or faster from one release of JAX to the next.

    python -m tools.performance.compile_releases docs/compile-releases.md --python A --python B ...

Each interpreter compiles the committed suite, the last case of each workload and transform, for
each target: twice without events, for its CPU seconds, of which the least count; and twice under
XLA's own events, which say what shares of it go where: those of the quicker of the two. So the
figures of groups are shares of measured CPU seconds. Times depend little on what else runs, and
are no wall times. The tables of the page are written anew, what stands above them stays. What is
measured is kept as JSON in `--keep FOLDER`, for a second call to find. One process for tpu:v5e
grows beyond 3 GB, so that target is made only where `--target` names it.
"""

import json
import time
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import jax
import msgspec
import psutil

from harness import targets
from harness.declare.workload import SEVERAL_DEVICES, skip_reason
from harness.program.compiler.inside import inside
from harness.program.compiler.recording import recorded
from harness.program.compiler.times import compile_times
from harness.program.compiler.tree import GROUPS
from harness.records.printable import table_lines
from harness.stages.build import Build
from harness.targets import topologies
from tools.performance.command import ROOT, options, prepared, took, workloads

TARGETS = ("cpu", "gpu:h200")
ROUNDS = 2
MOST_CASES = 8
LEAST_S = 0.02
"""CPU seconds of all cases that a group must have in some release to be shown."""


def cpu():
    """Return the CPU seconds of this process, and of `ptxas` and others that it has started."""
    spent = psutil.Process().cpu_times()
    return time.process_time() + spent.children_user + spent.children_system


def chosen(topology):
    """Yield the cases that are compiled: the last of each workload and transform."""
    for workload in workloads():
        last = {}
        for name, ready in prepared([workload], topology):
            case = ready.case
            if case.transform not in SEVERAL_DEVICES and not skip_reason(workload, case):
                last[case.transform] = name, ready
        yield from last.values()


def measure(place):
    """Return the release of JAX, and what each case takes."""
    topology = topologies.describe(place.name, place.description) if place.description else None
    one = topology.one if topology else None
    first = jax.jit(lambda x: x + 1)
    first.lower(jax.ShapeDtypeStruct((8,), "float32", sharding=one)).compile()
    cases, failed = [], []
    for name, ready in chosen(topology):
        try:
            cpu_s, told = [], []
            for _ in range(ROUNDS):
                for traced in (False, True):
                    jax.clear_caches()
                    build = Build.of(ready)
                    build.lower()
                    begin = cpu()
                    if traced:
                        told.append(inside(recorded(build.compile), ""))
                    else:
                        build.compile()
                        cpu_s.append(cpu() - begin)
            best = min(told, key=lambda each: each.threads_s)
        except Exception as error:
            failed.append(f"{name}: {error}"[:200])
            continue
        times = msgspec.to_builtins(compile_times(best))
        cases.append(
            {"case": name, "cpu_s": min(cpu_s), "kernels": len(best.kernels), "times": times}
        )
    return {"release": version("jaxlib"), "cases": cases, "failed": failed}


def asked(python, target, keep):
    """Return what an interpreter measures for a target."""
    place = targets.find(target)
    file = keep / f"{Path(python).parents[1].name}-{target.replace(':', '-')}.json"
    if not file.exists():
        there = {"JAX_ENABLE_COMPILATION_CACHE": "0", "JAX_PLATFORMS": place.platforms}
        command = [python, "-m", __spec__.name, "--child", target]
        said = took(command, cwd=ROOT, **there, **place.environment).out
        file.write_text(said.splitlines()[-1])
    found = json.loads(file.read_text())
    print(target, found["release"], len(found["cases"]), "programs", *found["failed"], sep="\n  ")
    return found


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
    cases = [{one["case"]: one for one in each["cases"]} for each in releases]
    shared = sorted(set.intersection(*map(set, cases)))
    sums = [defaultdict(float) for _ in releases]
    for total, release in zip(sums, cases, strict=True):
        for name in shared:
            for key, value in seconds(release[name]).items():
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
    counts = [sum(each[name]["kernels"] for name in shared) for each in cases]
    rows.append(["kernels, as events name them (a number)", *map(str, counts), _change(counts)])
    yield from (f"## {target}", "")
    yield f"{len(shared)} programs; CPU seconds, and the change from {names[0]} to {names[-1]}."
    yield ""
    yield from table_lines(["group", *(f"jaxlib {name}" for name in names), "change"], rows)
    yield from ("", f"The programs that changed most from {names[0]} to {names[-1]}:", "")
    yield from table_lines(["program", *names, "most of it in"], list(_cases(cases, shared)))
    yield ""


def _cases(cases, shared):
    before, after = cases[0], cases[-1]
    order = sorted(shared, key=lambda name: -abs(after[name]["cpu_s"] - before[name]["cpu_s"]))
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


def main():
    given = options(
        __doc__, select=True, python=[], target=[], keep=Path(".compile-releases"), child=""
    )
    if given.child:  # what each process does
        print(json.dumps(measure(targets.find(given.child))))
        return
    given.keep.mkdir(parents=True, exist_ok=True)
    lines = []
    for target in given.target or TARGETS:
        lines += page(target, [asked(python, target, given.keep) for python in given.python])
    file = Path(given.select[0])
    head, *_ = file.read_text().partition("\n## ")
    file.write_text(f"{head}\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
