"""Whether a sample labelled warm ever was not: entries are damaged at random between processes.

    python -m tests.performance.warm_labels [--samples 500]

Between the process that fills a directory and the one that reads it, each entry is left alone,
removed, torn, emptied, bit-flipped, or overwritten: with garbage, or with another program's
entry. A `load` that is kept must have come from an entry that was left alone, and one from an
entry that was left alone must be kept. Printed are the counts; target: 0 wrong labels in 500.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import jax.numpy as jnp

from harness import Workload, spec
from harness.engine import execution
from tests.performance.command import options, swept

DAMAGES = ("none", "none", "none", "removed", "torn", "emptied", "flipped", "garbage", "swapped")


class Ten(Workload):
    """Ten small programs, told apart in the directory by their names."""

    sweep = {"size": list(range(8, 28, 2))}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return jnp.sin(x) + x.shape[0]


def damage(file: Path, kind: str, rng: random.Random, others: list[Path]) -> None:
    """Do to one entry what `kind` says."""
    content = bytearray(file.read_bytes())
    if kind == "removed":
        file.unlink()
        return
    if kind == "torn":
        del content[rng.randrange(1, len(content)) :]
    elif kind == "emptied":
        content.clear()
    elif kind == "flipped":
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == "garbage":
        content = bytearray(rng.randbytes(len(content)))
    elif kind == "swapped":
        content = bytearray(rng.choice([o for o in others if o != file]).read_bytes())
    file.write_bytes(content)


def main() -> None:
    """Measure until there are enough samples, and count labels against the truth."""
    given = options(__doc__, samples=500, seed=0)
    rng = random.Random(given.seed)
    truth: dict[str, str] = {}
    real = execution.run

    def tamper(job, *arguments):
        folder = Path(job.cache_folder)
        files = sorted(folder.glob("jit_function-*-cache"))
        if job.scenario == "cold":
            return real(job, *arguments)
        kinds = {file: rng.choice(DAMAGES) for file in files}
        contents = {file.name: file.read_bytes() for file in files}
        for file, kind in kinds.items():
            damage(file, kind, rng, [f for f in files if f.exists() and f != file] or [file])
        for file, kind in kinds.items():
            intact = file.exists() and file.read_bytes() == contents[file.name]
            truth[f"{folder}/{file.name}"] = "none" if intact else kind
        return real(job, *arguments)

    execution.run = tamper
    counts: Counter[str] = Counter()
    wrong = samples = number = 0
    while samples < given.samples:
        truth.clear()
        outcome = swept([Ten], "1x1", scenarios=("warm",), seed=number, first_calls=0)
        number += 1
        loads = [r.stages.get("load") for r in outcome.records if r.workload.endswith("Ten")]
        samples += len(loads)
        kept = sum(bool(load and load.samples_ns) for load in loads)
        counts.update(truth.values())
        wrong += abs(kept - sum(kind == "none" for kind in truth.values()))
    print(f"{samples} samples; what was done to their entries: {dict(counts)}")
    print(f"{wrong} labels wrong (target: 0)")


if __name__ == "__main__":
    main()
