"""Whether a sample labelled warm ever was not: entries are damaged at random between processes.

    python -m tools.performance.warm_labels [--samples 500]

Between the process that fills a directory and the one that reads it, each entry is left alone,
removed, torn, emptied, bit-flipped, or overwritten: with garbage, or with another program's
entry. A `load` that is kept must have come from an entry that was left alone, and one from an
entry that was left alone must be kept. Printed are the counts; target: 0 wrong labels in 500.
"""

import random
from collections import Counter
from pathlib import Path

import jax.numpy as jnp

from harness import Workload, spec
from harness.measure.process import MeasuringProcess
from tools.performance.command import options, swept

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


def damage(content: bytes, kind: str, rng: random.Random, others: list[bytes]) -> bytes:
    """Return an entry after what `kind` says was done to it."""
    if kind == "torn":
        return content[: rng.randrange(1, len(content))]
    if kind == "flipped":
        at = rng.randrange(len(content))
        return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
    if kind == "garbage":
        return rng.randbytes(len(content))
    if kind == "swapped":
        return rng.choice([one for one in others if one != content])
    return b"" if kind == "emptied" else content


def main() -> None:
    given = options(__doc__, samples=500, seed=0)
    rng = random.Random(given.seed)
    truth: dict[Path, str] = {}
    real = MeasuringProcess.measure

    def tamper(process):
        job = process.job
        if job.scenario != "cold":
            files = sorted(Path(job.cache_folder).glob("jit_function-*-cache"))
            contents = [file.read_bytes() for file in files]
            for file, content in zip(files, contents, strict=True):
                truth[file] = kind = rng.choice(DAMAGES)
                file.write_bytes(damage(content, kind, rng, contents))
                if kind == "removed":
                    file.unlink()
        return real(process)

    MeasuringProcess.measure = tamper
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
        wrong += abs(kept - list(truth.values()).count("none"))
    print(f"{samples} samples; what was done to their entries: {dict(counts)}")
    print(f"{wrong} labels wrong (target: 0)")


if __name__ == "__main__":
    main()
