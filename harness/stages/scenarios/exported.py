"""`exported`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.jaxhooks import jax_names
from harness.stages.scenarios.scenario import Artefact, Scenario
from harness.workload.jitted import Jitted


def _make(build: Any) -> tuple[bytes, dict[str, Any]]:
    import jax  # only processes that measure have it
    from jax import export

    own = build.jitted
    verb = own.given(export.export(own.function)) if isinstance(own, Jitted) else export.export(own)
    made = verb(*build.arguments, **build.static)

    def donated(tree: Any) -> bool:
        return any(one.donated for one in jax.tree.leaves(tree))

    # Neither donation nor compiler options are in the file: whoever loads it gives them again.
    arguments, keywords = build.lowered.args_info
    options = dict(jax_names.options_of(build.traced).get("compiler_options_kvs", ()))
    return bytes(made.serialize()), {
        "donate_argnums": [n for n, one in enumerate(arguments) if donated(one)],
        "donate_argnames": [name for name, one in keywords.items() if donated(one)],
        "compiler_options": options or None,
    }


def _load(stored: bytes, call: Mapping[str, Any]) -> Any:
    import jax  # only processes that measure have it
    from jax import export

    return jax.jit(export.deserialize(bytearray(stored)).call, **call)


SCENARIO = Scenario(
    name="exported",
    description="a fresh process loads what another one exported with jax.export, and compiles it",
    steps=("build", "compile"),
    directory="filled",
    filled_in="exported",
    artefact=Artefact(_make, _load),
    outcomes=(("compile", {"compile": 1}),),
)
