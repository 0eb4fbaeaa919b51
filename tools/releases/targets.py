"""What one workload takes to build for every target, by release of JAX: seconds, launches, spills.

    python -m tools.releases.targets --python A --python B ... [WORKLOAD]

Each target is built in a process of its own, the last case of the workload (dense.MlpLoss). Of
spills, what XLA's log has: ptxas names the kernels that spill registers; no other compiler does.
A target that cannot be built has its reason. A minute for each interpreter.
"""

import argparse
import json
import os
import subprocess
import time

import jax
import pandas as pd

from harness import targets
from harness.program.facts import facts_of
from harness.stages.build import Build
from harness.targets import topologies
from tools.performance.command import ROOT, prepared, workloads


def built(target, workload):
    """Return the release, the seconds of one compile, and the launches of what it made."""
    place = targets.find(target)
    there = place.description and topologies.describe(place.name, place.description)
    *_, (_, ready) = prepared(workloads(workload), there or None)
    one = there.one if there else None
    jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((8,), "float32", sharding=one)).compile()
    build = Build.of(ready)
    for _, work in build.steps():  # the last one compiles
        begin = time.perf_counter()
        work()
        took_s = time.perf_counter() - begin
    facts = facts_of(build.traced, build.lowered, build.compiled)
    return {"jax": jax.__version__, "s": took_s, "launches": facts.launches}


def cell(python, target, workload):
    """Return the release of an interpreter, and what building for a target gives there."""
    place = targets.find(target)
    there = {
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "JAX_ENABLE_COMPILATION_CACHE": "0",
        "JAX_PLATFORMS": place.platforms,
    }
    words = [python, "-m", __spec__.name, "--target", target, workload]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0", **there, **place.environment},
    )
    if done.returncode:
        return "", (done.stderr.strip().splitlines() or ["?"])[-1][:200]
    row = json.loads(done.stdout.splitlines()[-1])
    spills = sum("spill" in line.lower() for line in done.stderr.splitlines())
    spilled = f", {spills} spill" if target.startswith("gpu:") else ""
    return row["jax"], f"{row['s']:.2f} s, {row['launches']} launches{spilled}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", default=[], metavar="EXE")
    parser.add_argument("--target", help="what each process does")
    parser.add_argument("workload", nargs="?", default="dense.MlpLoss")
    given = parser.parse_args()
    if given.target:
        print(json.dumps(built(given.target, given.workload)))
        return
    table = {}
    for python in given.python:
        names = ["cpu", *(one.name for one in targets.TARGETS.values() if one.compile_only)]
        cells = {name: cell(python, name, given.workload) for name in names}
        release = next((release for release, _ in cells.values() if release), python)
        table[release] = {name: text for name, (_, text) in cells.items()}
        print(f"{release} done", flush=True)
    print(pd.DataFrame(table).to_string())


if __name__ == "__main__":
    main()
