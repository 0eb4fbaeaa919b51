"""Build programs in a process of their own for one target, and say what was read of them.

    python -m tests.program.built TARGET [NAME ...]

TARGET is `cpu`, `gpu:h200` or `tpu:v5e`; the latter two are compile-only. Prints a JSON object:
program to `facts`, `objects` and `text`, the latter two the counts of the HLO by either way of
reading it (`objects` null where jaxlib cannot), `names`, which of both differ, and `opcodes`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import harness
from harness.targets import registry
from tests import forks

PACKAGES = {"gpu:h200": "jax_cuda13_plugin", "tpu:v5e": "libtpu"}
"""What has to be installed to build for a target."""

CONFIG = Path(harness.__file__).parent / "targets" / "data" / "h200.pbtxt"


def build(target, names=()):
    """Run this module for `target` in another process and return what it prints."""
    variables = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    done = forks.run(
        [sys.executable, "-m", "tests.program.built", target, *names],
        env=os.environ | variables | registry.find(target).environment,
        cwd=forks.ROOT,
        check=True,
    )
    return json.loads(done.stdout)


def devices(target):
    """Return the devices of a target, none of which need be there."""
    import jax
    from jax.experimental import topologies

    if target == "gpu:h200":
        return topologies.get_topology_desc(
            platform="cuda", target_config=CONFIG.read_text(), topology="1x1x1"
        ).devices
    if target == "tpu:v5e":
        return topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices
    return jax.devices()


def main():
    import jax
    import msgspec
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from harness.program import facts, hlo
    from tests.program.programs import PROGRAMS, SHARDED

    target, *names = sys.argv[1:]
    one = NamedSharding(Mesh(np.array(devices(target)[:1]), ("x",)), PartitionSpec())
    rows = NamedSharding(Mesh(np.array(devices(target)), ("x",)), PartitionSpec("x"))
    chosen = PROGRAMS | (SHARDED if len(devices(target)) > 1 else {})
    found = {}
    for name in names or chosen:
        function, arguments = chosen[name]
        sharding = rows if name in SHARDED else one
        pairs = [a if isinstance(a[-1], str) else (a, "float32") for a in arguments]
        specs = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for shape, dtype in pairs]
        traced = jax.jit(function).trace(*specs)
        lowered = traced.lower()
        compiled = lowered.compile()
        objects = hlo.from_objects(hlo.modules(compiled))
        text = hlo.from_text(compiled.as_text())
        found[name] = {
            "facts": msgspec.to_builtins(facts.facts_of(traced, lowered, compiled)),
            "objects": objects and facts.read("hlo", objects),
            "text": facts.read("hlo", text),
            "opcodes": sorted({line.opcode for line in text.instructions()}),
            "names": objects and sorted(_names(objects) ^ _names(text)),
        }
    print(json.dumps(found))


def _names(program):
    return {
        (computation, line.name, line.opcode)
        for computation, lines in program.computations.items()
        for line in lines
    }


if __name__ == "__main__":
    main()
