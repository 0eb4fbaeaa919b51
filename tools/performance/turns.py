"""How long a comparison in turns takes, and how often it finds changes that were planted.

    python -m tools.performance.turns [--cases 2] [--busy 0] [--rounds 8] [PLANTED...]
    python -m tools.performance.turns --draws 100 [--pool 12] [PLANTED...]

Makes a repository with a workload of that many cases, of which the second commit has a planted
change (all of :data:`PLANTED` without any), beside --busy busy loops. Runs `harness compare HEAD~1
HEAD` as a job of CI does, and prints seconds of the clock and of the processor, and the answer.

With --draws, --pool rounds of both commits are measured once, and so many comparisons of --rounds
of them, drawn at random, are judged as `harness compare` judges them, look after look. Prints of
each stage in which share of the rows a change was called, on which evidence.
"""

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pandas as pd

from harness.frame.load import frame_of
from harness.frame.pairs import Arm, pair
from harness.jaxhooks.temporary import temporary_folder
from harness.records.schema import Record
from harness.stages.registry import STAGES
from harness.stages.sampling import effort
from harness.verdicts.compare import judged_pairs
from harness.verdicts.judge import Terms
from harness.verdicts.live.arm import parse, prepared
from harness.verdicts.live.comparison import worth_rounds
from harness.verdicts.live.rounds import (
    LiveOptions,
    Worker,
    measure_round,
    next_look,
    share,
    with_equal_code,
)
from harness.verdicts.verdict import LESS, MORE, MOVED
from tools.performance.command import options

WORKLOAD = '''
import chain
from harness import Workload, spec


class Chain(Workload):
    """A chain of operations."""

    sweep = {"size": [%s]}
    targets = ("cpu",)

    def inputs(self, size):
        return (spec((size,), "float32"),)

    function = staticmethod(chain.function)
'''

CODE = """# %(comment)s
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir


def lowered(context, x):
    time.sleep(%(lowers)s)
    return [x]


late_p = Primitive("late")
late_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(late_p, lowered)


def late(x):
    time.sleep(%(late)s)
    return np.asarray(x)


def function(x):
    time.sleep(%(waits)s)
    x = late_p.bind(x)
    for _ in range(%(steps)s):
        x = jax.nn.gelu(x) + 1
    if %(late)s >= 0:
        x = jax.pure_callback(late, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    return x
"""

BASE = {"waits": 0, "lowers": 0, "steps": 20, "late": -1, "comment": ""}
PLANTED = {
    "nothing": ({}, {"comment": "the same\n"}),
    "steps": ({}, {"steps": 22}),
    "few": ({"steps": 33}, {"steps": 34}),
    "waits": ({}, {"waits": 0.1}),
    "lowers": ({}, {"lowers": 0.1}),
    "callback": ({"late": 0}, {"late": 0.1}),
}
"""Before and after: a comment; a tenth more of a chain of operations; 3 % more; 0.1 s of sleep in
the function, so in its trace; in a rule by which it is lowered; in a callback, so in its calls."""

Rounds = list[tuple[list[Record], list[Record]]]


@contextmanager
def repository(name: str, cases: int, busy: int) -> Iterator[Path]:
    """Yield a repository of two commits, the second with a planted change, beside busy loops."""
    sizes = ", ".join(str(1024 + number) for number in range(cases))
    before, after = PLANTED[name]
    with ExitStack() as stack:
        top = Path(stack.enter_context(temporary_folder()))
        for _ in range(busy):
            loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(loop.kill)
        for folder in ("benchmarks", "src"):
            (top / folder).mkdir()
        (top / "benchmarks" / "chains.py").write_text(WORKLOAD % sizes)
        subprocess.run(["git", "init", "-q", str(top)], check=True)
        commit(top, **before)
        commit(top, **{**before, **after})
        yield top


def commit(top: Path, **changed: object) -> None:
    """Commit the code with some values changed."""
    (top / "src" / "chain.py").write_text(CODE % {**BASE, **changed})
    who = ("-c", "user.name=tester", "-c", "user.email=tester@example.com")
    for words in (("add", "-A"), (*who, "commit", "-q", "-m", "chain")):
        subprocess.run(["git", "-C", str(top), *words], check=True)


def compared(top: Path, rounds: int) -> tuple[float, float, dict[str, object], str]:
    """Compare the last two commits; return both times, the document and the last message."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "harness", "compare", "HEAD~1", "HEAD", "--format", "json"]
    done = subprocess.run(
        [*command, "--effort", f"{rounds}x1"],
        cwd=top,
        env={**os.environ, "CI": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    cpu_s = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return wall_s, cpu_s, json.loads(done.stdout), done.stderr.strip().splitlines()[-1]


def measured(top: Path, rounds: int) -> Rounds:
    """Return the records of so many rounds of the last two commits."""
    given = LiveOptions(effort(f"{rounds}x1"), top / "benchmarks")
    found: Rounds = []
    with ExitStack() as stack:
        places = [
            stack.enter_context(prepared(parse(arm), given.benchmarks))
            for arm in ("HEAD~1", "HEAD")
        ]
        workers = [Worker(place, letter, given) for place, letter in zip(places, "AB", strict=True)]
        for worker in workers:
            stack.callback(worker.end)
            worker.begin()
        for number in range(1, rounds + 1):
            folder = top / f"round-{number}"
            own = measure_round(workers, [], number, number, folder, lambda turn, side: None)
            found.append(with_equal_code(own, [place.tree for place in places]))
    return found


def judged(rounds: Sequence[tuple[list[Record], list[Record]]]) -> pd.DataFrame:
    """Return what a comparison of these rounds ends with, in this order."""
    looks: list[float] = []
    done = 0
    while True:
        done = next_look(done, len(rounds))
        arms = (
            Arm("AB"[side], frame_of(_named(rounds[:done], side)).assign(in_turns=True))
            for side in (0, 1)
        )
        looks += [done / len(rounds)] if done > 1 else []
        terms = Terms(share=share(looks) if looks else 1.0)
        frame = judged_pairs(pair(*arms, on=[]), terms=terms).frame
        if done == len(rounds) or worth_rounds(frame, looks).empty:
            return frame.assign(rounds=done)


def _named(rounds: Rounds, side: int) -> Iterator[Record]:
    for number, both in enumerate(rounds):
        for record in both[side]:
            name = f"{record.replicate.rpartition('#')[0]}#{number}"
            yield msgspec.structs.replace(record, replicate=name)


def drawn(name: str, pool: Rounds, rounds: int, draws: int) -> None:
    """Judge comparisons of rounds drawn from a pool, and print what was called."""
    rng = random.Random(0)
    frames = [judged(rng.sample(pool, rounds)) for _ in range(draws)]
    whole = pd.concat(frames)
    ended = sorted(frame["rounds"].iloc[0] for frame in frames)
    print(f"{name}: {draws} comparisons; rounds taken: {ended[0]} to {ended[-1]}", end="")
    print(f", {ended[len(ended) // 2]} in the middle")
    for stage in filter({*whole["stage"]}.__contains__, STAGES):
        own = whole[whole["stage"] == stage]
        moved = own[own["verdict"].isin([*MOVED, MORE, LESS])]
        by = moved.groupby(["verdict", "evidence"]).size() / len(own)
        texts = [f"{verdict} by {evidence} {part:.0%}" for (verdict, evidence), part in by.items()]
        unsure = (own["verdict"] == "unsure").mean()
        print(f"  {stage:10s} {', '.join(texts) or 'nothing called'}; unsure {unsure:.0%}")


def main() -> None:
    given = options(__doc__, select=True, cases=2, busy=0, rounds=8, draws=0, pool=12)
    for name in given.select or PLANTED:
        with repository(name, given.cases, given.busy) as top:
            if given.draws:
                began = time.monotonic()
                pool = measured(top, given.pool)
                print(f"{given.pool} rounds in {time.monotonic() - began:.0f} s")
                drawn(name, pool, given.rounds, given.draws)
                continue
            wall_s, cpu_s, document, last = compared(top, given.rounds)
        print(f"{name}: {wall_s:.0f} s, {cpu_s:.0f} s of CPU; {document['answer']}")
        print(f"  {document['counts']}; {last}")


if __name__ == "__main__":
    main()
