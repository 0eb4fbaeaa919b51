"""Try what releases of JAX do, write the page of it, and print what differs.

    python -m tools.releases --python A --python B ... [--seconds] [--write]

Each interpreter has a release of JAX, and what the harness needs; `make releases` makes the three
environments. Of each release all experiments are run (about two minutes): those with JAX alone
(experiments.py), those with the persistent cache (tools/probe), and what can be compiled for;
`--seconds` measures how long compiling takes, too (many minutes, 3 GB); without it the seconds that
are committed stay. What differs from the committed results of that release, or where it has none
from those of the newest release before it, is printed. `--write` stores the results as JSON in
docs/by-release and makes docs/jax-by-release.md anew. Exit code 1 if anything differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from harness import targets
from tools.probe import examine
from tools.probe.bench import Bench
from tools.probe.rows import ROWS
from tools.releases import page

ROOT = Path(__file__).parents[2]
EXPERIMENTS = Path(__file__).with_name("experiments.py")
TARGETS = ("cpu", "gpu:h200", "tpu:v5e")
LIBTPU = "import importlib.metadata as m, json; print(json.dumps(m.version('libtpu')))"


def answered(python, *words, asked=None, **variables):
    """Return the JSON value that an interpreter prints."""
    done = subprocess.run(
        [python, *words],
        input=json.dumps(asked or {}),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables},
    )
    if done.returncode:
        sys.exit(f"{python} {words[-1]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def cache(python):
    """Return the finding of each row of the cache."""
    with tempfile.TemporaryDirectory(prefix="harness-probe-") as scratch:
        bench = Bench(python, Path(scratch).resolve())
        return {name: list(examine(row, bench)) for name, row in ROWS.items()}


def targets_of(python):
    """Return which compile-only targets can be compiled for, and by which libtpu."""
    rows = answered(python, "-m", "harness", "targets", "--format", "json")
    usable = [row["target"] for row in rows if row["here"] == "yes" and ":" in row["target"]]
    return {
        "compile-only targets": ", ".join(usable),
        "libtpu": answered(python, "-c", LIBTPU),
    }


def seconds(python):
    """Return the CPU seconds of compiling for each target."""
    found = {}
    for target in TARGETS:
        place = targets.find(target)
        there = {"JAX_ENABLE_COMPILATION_CACHE": "0", "JAX_PLATFORMS": place.platforms}
        words = ("-m", "tools.releases.seconds", target)
        found[target] = answered(python, *words, **there, **place.environment)
        print(f"{python} {target}: {found[target]['programs']} programs", flush=True)
    return found


def main():
    """Measure, print what differs, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", required=True, metavar="EXE")
    parser.add_argument("--seconds", action="store_true", help="of compiling, too")
    parser.add_argument("--write", action="store_true", help="the results, and the page")
    asked = parser.parse_args()
    committed = page.load()
    now = {}
    for python in asked.python:
        of_jax = answered(python, "-P", str(EXPERIMENTS), JAX_PLATFORMS="cpu")
        release = of_jax.pop("jax")
        before = committed.get(release, {})
        print(f"jax {release}: {len(of_jax['results'])} experiments", flush=True)
        today = datetime.now(UTC).date().isoformat()
        seconds_on = today if asked.seconds else before.get("dates", {}).get("seconds", "never")
        now[release] = {
            **of_jax,
            "dates": {"experiments": today, "caching": today, "seconds": seconds_on},
            "cache": cache(python),
            "targets": targets_of(python),
            "seconds": seconds(python) if asked.seconds else before.get("seconds", {}),
        }
    every = page.ordered({**committed, **now})
    exports = {release: one["exported"] for release, one in every.items()}
    for python, release in zip(asked.python, now, strict=True):
        words = ("-P", str(EXPERIMENTS), "reads")
        now[release]["reads"] = answered(python, *words, asked=exports, JAX_PLATFORMS="cpu")
    differ = [line for release in now for line in page.differences(release, every, committed)]
    print("\n".join(differ) or "Nothing differs.")
    if asked.write:
        page.save(every)
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
