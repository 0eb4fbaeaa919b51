"""Set well-known repositories up as they are, and measure them once.

    python -m tools.corpus.repositories --checkouts FOLDER [--python PYTHON] [NAME ...]

FOLDER holds a clone of each repository, or gets one; PYTHON's environment has the harness, pytest,
and what the repositories import.
Each is copied into an empty folder and set up by one command; nothing of it is installed or edited,
ASV_PYTHONPATH names the copy. Its workloads are measured by one process each at two commits of the
same code, which are then compared by counts. The exit code is the number of repositories in which
a command failed, or the verdict was another than that nothing rose.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import harness
from tests.repositories import git
from tools.corpus.table import write_below

MARK = "--markdown docs/repositories.md -->\n"
LIMIT_S = 600.0
SURROUNDINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_COMPILATION_CACHE": "0",
    "HARNESS_MACHINE": "here",
}


class Repository(NamedTuple):
    """A repository, and the command that sets it up."""

    address: str
    """Without the host."""
    setup: str
    took: str = "nothing"

    @property
    def name(self) -> str:
        """Of its clone."""
        return self.address.rpartition("/")[2]


class Outcome(NamedTuple):
    """What came of it."""

    repository: Repository
    commit: str
    set_up_s: float
    all_s: float
    workloads: int
    rows: int
    verdict: str
    """The first line of the comparison; of a command that failed, the last that it said."""
    failed: bool


def arrays(*specs: str) -> str:
    """Return options of `harness init`."""
    return " ".join(f'--arg "{one}"' for one in specs)


ATTENTION, SQUARES = arrays(*["float32[2,64,4,32]"] * 3), arrays(*["float32[64,64]"] * 2)
SCRIPTS = "`workloads/` instead of `benchmarks/`, which has scripts of its own"

FLAX = f"init --function flax.linen.attention:dot_product_attention {ATTENTION}"
NUMPYRO = f"init --function numpyro.distributions.util:logmatmulexp {SQUARES}"

REPOSITORIES = (
    Repository("google/flax", FLAX, SCRIPTS),
    Repository("patrick-kidger/equinox", "adopt tests/test_misc.py"),
    Repository("google-deepmind/optax", "adopt optax/losses/_regression_test.py"),
    Repository("pyro-ppl/numpyro", NUMPYRO),
    Repository("patrick-kidger/diffrax", "adopt test/test_misc.py", SCRIPTS),
    Repository("google-deepmind/dm-haiku", "adopt haiku/_src/pool_test.py"),
    Repository("patrick-kidger/lineax", "adopt tests/test_norm.py"),
    Repository("patrick-kidger/optimistix", "adopt tests/test_misc.py"),
    Repository("google-deepmind/distrax", "adopt distrax/_src/utils/math_test.py"),
    Repository("google-deepmind/rlax", "adopt rlax/_src/vtrace_test.py"),
    Repository("google/jaxopt", "adopt tests/loss_test.py::LossTest::test_binary_logistic_loss"),
)


class CommandFailed(Exception):
    """A command ended otherwise than it should; the text is the last line that it said."""


class Clone:
    """A copy of a clone, in which commands are run."""

    def __init__(self, source: Path, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python
        shutil.copytree(source, folder, symlinks=True)
        self.commit = git(folder, "log", "-1", "--format=%h, %cs")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ASV_", "PYTHONPATH"))}
        self.environment = {**kept, **SURROUNDINGS, "ASV_PYTHONPATH": str(folder)}

    def harness(self, words: str) -> str:
        """Run a command of `harness`; return what it said on standard output."""
        command = [self.python, "-P", "-m", "harness", *shlex.split(words)]
        how = {"cwd": self.folder, "env": self.environment, "timeout": LIMIT_S}
        done = subprocess.run(command, capture_output=True, text=True, **how)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
            raise CommandFailed(f"{words.split()[0]} ended with {done.returncode}: {last}")
        return done.stdout


def measured(repository: Repository, checkouts: Path, python: str) -> Outcome:
    """Set a repository up in a clone, measure it twice, and compare."""
    source = checkouts / repository.name
    if not source.is_dir():
        git(checkouts, "clone", "--depth", "1", f"https://github.com/{repository.address}")
    with tempfile.TemporaryDirectory() as folder:
        clone = Clone(source, Path(folder) / repository.name, python)
        began = time.monotonic()
        set_up_s, failed, good = 0.0, False, []
        try:
            said = clone.harness(repository.setup)
            set_up_s = time.monotonic() - began
            quick = said.partition("Next:\n  harness ")[2].partition("#")[0]
            for text in ("Benchmarks 1", "Benchmarks 2"):
                git(clone.folder, "add", "--all")
                git(clone.folder, "commit", "--quiet", "--allow-empty", "-m", text)
                clone.harness(quick)
            said = clone.harness("compare HEAD~1 HEAD --counts").strip().splitlines()[0]
            verdict = said.removeprefix("By Python's calls in trace and lower, ").removesuffix(".")
        except (CommandFailed, subprocess.TimeoutExpired) as error:
            verdict, failed = str(error), True
        all_s = time.monotonic() - began
        if (results := clone.folder / "results").is_dir():
            rows = harness.load(results, all=True)
            theirs = (rows["status"] == "ok") & ~rows["workload"].isin(["process", "reference"])
            good = rows.loc[theirs, "workload"].tolist()
        counts = len(set(good)), len(good)
        return Outcome(repository, clone.commit, set_up_s, all_s, *counts, verdict, failed)


def markdown(outcomes: list[Outcome]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| repository | `harness` | set up | in all | workloads | rows, verdict | besides |"
    yield "|---|---|---|---|---|---|---|"
    for one in outcomes:
        place = one.repository.address
        cells = (
            f"[{one.repository.name}](https://github.com/{place}), {one.commit}",
            f"`{one.repository.setup}`",
            f"{one.set_up_s:.0f} s",
            f"{one.all_s:.0f} s",
            str(one.workloads),
            f"{one.rows}; {one.verdict}",
            one.repository.took,
        )
        yield f"| {' | '.join(cells)} |"


def main() -> int:
    """Do what the command line says; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.corpus.repositories")
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="*", help="only these")
    parser.add_argument("--checkouts", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="a page with a mark in it")
    given = parser.parse_args()
    known = {one.name: one for one in REPOSITORIES}
    if wrong := [name for name in given.name if name not in known]:
        parser.error(f"{', '.join(wrong)}: not among {', '.join(known)}.")
    outcomes = []
    for repository in [known[name] for name in given.name or known]:
        outcome = measured(repository, given.checkouts.resolve(), given.python)
        print(f"{repository.name}: {outcome.verdict} ({outcome.all_s:.0f} s)", file=sys.stderr)
        outcomes.append(outcome)
    text = "\n".join(markdown(outcomes))
    print(text)
    if given.markdown:
        write_below(given.markdown, MARK, text)
    return sum(one.failed for one in outcomes)


if __name__ == "__main__":
    sys.exit(main())
