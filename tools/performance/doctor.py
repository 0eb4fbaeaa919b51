"""How long `harness cache doctor` and `inspect` take, and whether a healthy cache is called bad.

    python -m tools.performance.doctor [--entries 20000] [--beside TREE]

Compiles up to three cases of each of the project's workloads into a cache, has every entry looked
at and loaded, then does so with so many copies of the smaller ones, and loads 500. It says how many
entries were called bad, of which none is, and the seconds of the whole command, Python's start
included, and of the processor (targets for 20,000 entries on a quiet machine: doctor 2.5 s,
inspect 2 s). With `--beside`, the same commands of another checkout run in turn with these, five
times each, so that both have the same machine.
"""

import hashlib
import itertools
import json
import shutil
import tempfile
from functools import partial
from pathlib import Path

import jax

from harness.stages.build import Build
from tools.performance.command import (
    HARNESS,
    ROOT,
    in_turns,
    options,
    prepared,
    spread,
    took,
    workloads,
)

CASES, LOADED, TURNS = 3, 500, 5


def main() -> None:
    given = options(__doc__, entries=20_000, beside="")
    with tempfile.TemporaryDirectory(prefix="harness-doctor-") as name:
        folder = Path(name)
        _fill(folder / "own")
        entries = sorted((folder / "own").glob("*-cache"), key=lambda file: file.stat().st_size)
        _look(folder / "own", "--load")
        for count, more in ((given.entries, ()), (LOADED, ("--load",))):
            place = folder / f"{count}"
            place.mkdir()
            for number, entry in zip(range(count), itertools.cycle(entries[: len(entries) // 2])):
                module = entry.name.removesuffix("-cache")[:-65]
                key = hashlib.sha256(str(number).encode()).hexdigest()
                shutil.copyfile(entry, place / f"{module}-{key}-cache")
            _look(place, *more)
        trees = {"here": ROOT} | ({"beside": Path(given.beside)} if given.beside else {})
        for words in (("doctor", "--no-put-cost"), ("inspect",)):
            command = [*HARNESS, "cache", *words, folder / f"{given.entries}"]
            turns = in_turns(
                TURNS, {name: partial(took, command, cwd=tree) for name, tree in trees.items()}
            )
            for name, times in turns.items():
                wall, cpu = ([getattr(one, kind) for one in times] for kind in ("wall_s", "cpu_s"))
                print(f"{words[0]}, {name}: {spread(wall)}; of CPU {spread(cpu)}", flush=True)


def _fill(directory: Path) -> None:
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    for workload in workloads():
        for _, ready in itertools.islice(prepared([workload]), CASES):
            for _, step in Build.of(ready).steps():
                step()


def _look(directory: Path, *more: str) -> None:
    command = [
        *HARNESS,
        "cache",
        "doctor",
        directory,
        "--format=json",
        "--no-put-cost",
        "--settle",
        "0",
    ]
    done = took([*command, *more], code=None)
    seen = json.loads(done.out)
    bad = [one for one in seen["findings"] if one["severity"] != "note"]
    loaded = f", {seen['loads']['loaded']} loaded" if seen["loads"] else ""
    count = len(list(directory.glob("*-cache")))
    print(
        f"{count:,} entries in {done.wall_s:.1f} s, {done.cpu_s:.1f} s of CPU{loaded}; "
        f"{len(bad)} called bad",
        flush=True,
    )


if __name__ == "__main__":
    main()
