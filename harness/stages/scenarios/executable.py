"""`executable`."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from harness.stages.scenarios.scenario import Artefact, NoArtefact, Scenario

LAPACK = (
    "it calls LAPACK, which JAX looks up only when it lowers such a call: a process that loads the "
    "executable and calls it ends with SIGSEGV (jax 0.10 to 0.12)"
)


def _make(build: Any) -> tuple[bytes, dict[str, Any]]:
    import jax  # only processes that measure have it
    from jax.experimental.serialize_executable import serialize

    compiled = build.compiled
    if 'custom_call_target="lapack_' in compiled.as_text():
        raise NoArtefact(LAPACK)
    placed = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    devices = {device.id for sharding in placed for device in sharding.device_set}
    return pickle.dumps(serialize(compiled)), {"devices": sorted(devices)}


def _load(stored: bytes, call: Mapping[str, Any]) -> Any:
    import jax  # only processes that measure have it
    from jax.experimental.serialize_executable import deserialize_and_load

    devices = [device for device in jax.devices() if device.id in call["devices"]]
    executable, in_tree, out_tree = pickle.loads(stored)
    return deserialize_and_load(executable, in_tree, out_tree, execution_devices=devices)


SCENARIO = Scenario(
    name="executable",
    description="a fresh process loads what another one compiled and serialised",
    steps=("load",),
    directory="filled",
    filled_in="executable",
    artefact=Artefact(_make, _load),
    outcomes=(("load", {}),),
)
