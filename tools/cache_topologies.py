"""Is what was compiled for one topology a hit for another? For a TPU and a GPU, compile-only.

`python -m tools.cache_topologies` compiles one program for each
topology below, in fresh processes with a ledger and an empty cache, and writes a row for each pair:
whether JAX's keys are the same, and if not, which parts of them differ.
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.cache.key_parts import accelerator_changes
from harness.cache.ledger import ledger, read
from harness.jaxhooks.cache_keys import ACCELERATOR
from harness.jaxhooks.parts import accelerator_part
from harness.output.explain import change_text
from harness.targets import registry
from tests import forks
from tests.cache.filled import environment
from tools.cache_sharing import ROOT, main


@dataclass(frozen=True)
class Place:
    """Devices that a program is compiled for."""

    target: str
    topology: str
    """TPUs: release and grid. GPUs: slices x hosts x devices of each."""
    used: int
    """The program's array lies on the first so many of them."""

    def __str__(self) -> str:
        return f"{self.target} {self.topology}, {self.used} used"


TPU, GPU = "tpu:v5e", "gpu:h200"
PAIRS = (
    (Place(TPU, "v5e:2x2", 1), Place(TPU, "v5e:2x2", 1)),
    (Place(TPU, "v5e:2x2", 1), Place(TPU, "v5e:2x4", 1)),
    (Place(TPU, "v5e:2x2", 4), Place(TPU, "v5e:2x4", 4)),
    (Place(TPU, "v5e:2x4", 8), Place(TPU, "v5e:4x4", 16)),
    (Place(TPU, "v5e:2x2", 1), Place(TPU, "v5e:2x2", 4)),
    (Place(TPU, "v5e:2x2", 1), Place("tpu:v6e", "v6e:2x2", 1)),
    (Place(GPU, "1x1x1", 1), Place(GPU, "1x1x1", 1)),
    (Place(GPU, "1x1x1", 1), Place(GPU, "1x1x8", 1)),
    (Place(GPU, "1x1x4", 4), Place(GPU, "1x1x8", 4)),
    (Place(GPU, "1x1x8", 8), Place(GPU, "1x8x1", 8)),
    (Place(GPU, "1x1x1", 1), Place(GPU, "2x1x1", 1)),
)
"""Who fills, and who reads. The first pair of each is the same place twice."""


def child(path: str, name: str, topology: str, used: int) -> None:
    """Compile a program for some devices of a topology, under a ledger."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    description = registry.find(name).description
    if name.startswith("gpu:"):
        described = topologies.get_topology_desc(
            platform="cuda", target_config=description, topology=topology
        )
    else:
        described = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    devices = sorted(described.devices, key=lambda device: device.process_index)
    mesh = Mesh(devices[:used], ("devices",))  # of one host, where it has so many
    sharding = NamedSharding(mesh, PartitionSpec("devices"))
    argument = jax.ShapeDtypeStruct((64, 64), "float32", sharding=sharding)

    def step(x):
        return jax.numpy.tanh(x @ x.T).sum()

    with ledger(path):
        jax.jit(step).lower(argument).compile()


def compile_for(place: Place, made: Path, cache: Path) -> None:
    """Compile for a place in a process of its own, with a ledger and a cache.

    Raises:
        RuntimeError: It ended badly; with its last words.
    """
    target = registry.find(place.target)
    mine = json.dumps([str(made), place.target, place.topology, place.used])
    done = forks.run(
        [sys.executable, "-m", "tools.cache_topologies", "--child", mine],
        env={**environment(cache, **target.environment), "JAX_PLATFORMS": target.platforms},
        cwd=ROOT,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"{place}: {done.stderr[-2000:]}")


def difference(filled: Path, reads: Path) -> list[str]:
    """Return what differs between the keys of two ledgers' programs, in words."""
    books = [read(ledger) for ledger in (filled, reads)]
    (first,), (second,) = ([one for one in book.events if one.key] for book in books)
    hashes = [{part.name: part.sha256 for part in event.components} for event in (first, second)]
    found = [name for name in hashes[0] if hashes[0][name] != hashes[1][name]]
    if first.key == second.key:
        assert not found
        return []
    if ACCELERATOR in found:
        texts = [
            book.parts.get(accelerator_part(each[ACCELERATOR]))
            for book, each in zip(books, hashes, strict=True)
        ]
        more = accelerator_changes(*texts) if all(texts) else ()
        found[found.index(ACCELERATOR)] = (
            f"{ACCELERATOR} ({'; '.join(map(change_text, more)) or 'no more is known'})"
        )
    return found


def table() -> str:
    """Compile for every place, and return the table as Markdown."""
    rows = ["| filled for | read for | same key | what differs |", "| --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory(prefix="harness-topologies-") as name:
        folder = Path(name)

        @functools.cache
        def compiled(place: Place, time: int) -> Path:
            cache = folder / "cache"
            shutil.rmtree(cache, ignore_errors=True)  # jax 0.10.2 has its path in the key
            made = folder / f"{len(list(folder.glob('*.jsonl')))}.jsonl"
            compile_for(place, made, cache)
            return made

        for filled, reads in PAIRS:
            differs = difference(compiled(filled, 1), compiled(reads, 1 + (filled == reads)))
            rows.append(
                f"| {filled} | {reads} | {'no' if differs else 'yes'} | {'; '.join(differs)} |"
            )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main("topologies", (__doc__ or "").partition("\n")[0], table, child)
