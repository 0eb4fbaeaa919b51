"""Build programs in a process of their own for one target, and say what was read of them.

    python -m tests.program.built TARGET [NAME ...]

TARGET is `cpu`, `gpu:h200` or `tpu:v5e`; the latter two are compile-only. Prints a JSON object:
program to its `facts` and its `opcodes`.
"""

import json
import os
import sys

from harness.targets import registry
from tests import forks

PACKAGES = {"gpu:h200": "jax_cuda13_plugin", "tpu:v5e": "libtpu"}
"""What has to be installed to build for a target."""


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

    from harness.targets import topologies

    description = registry.find(target).description
    return topologies.describe(target, description).devices if description else jax.devices()


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
        program = hlo.from_text(compiled.as_text())
        found[name] = {
            "facts": msgspec.to_builtins(facts.facts_of(traced, lowered, compiled)),
            "opcodes": sorted({line.opcode for line in program.instructions()}),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
