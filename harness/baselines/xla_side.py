"""The workload's function compiled by XLA: ahead of time, stage by stage, and then called."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.baselines.side import Side, l2_cache_bytes, last_level_cache
from harness.jaxhooks import evidence, jax_names
from harness.jaxhooks.temporary import temporary_folder
from harness.program.text import fingerprint
from harness.workload.workload import Case, Workload

if TYPE_CHECKING:
    from harness.stages.passes import Pass


class XlaSide(Side):
    """`function`, jitted. On a CPU each call is waited for: independent programs would overlap.

    A GPU's one stream finishes calls in their order.
    """

    name = "xla"
    families = ("cpu", "gpu")
    colour = "#009E73"
    uses_jax = True
    ahead_of_time = True

    def __init__(self, target: str) -> None:
        """Wake JAX's backend and compile one trivial program, whose cost is no case's."""
        # JAX reads variables when it is imported: after they were verified.
        self.jax: Any = jax_names.public()
        jax = self.jax
        self.platform = target
        self.asynchronous = target != "cpu"
        jax.devices()
        jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((8,), "float32")).compile()
        self.proof = evidence.Evidence()
        self.take: Callable[..., Pass] | None = None
        """Takes a pass over the case, with options of `take_pass`; whoever measures sets it."""
        self.taken: Pass | None = None

    def versions(self) -> dict[str, str]:
        """Return the versions of jax, jaxlib and what drives the device."""
        version = " ".join(self.jax.devices()[0].client.platform_version.split())
        return {
            "jax": self.jax.__version__,
            "jaxlib": importlib.metadata.version("jaxlib"),
            "platform": version,
        }

    def put(self, arguments: Any) -> Any:
        """Return the arguments on the device, uncommitted as a user's are."""
        return self.jax.block_until_ready(self.jax.device_put(arguments))

    def build(self, workload: type[Workload], case: Case, arguments: Any) -> Callable[..., Any]:
        """Trace, lower and compile anew; `taken` holds the samples. Return the jitted function."""
        assert self.take is not None
        self.taken = self.take(steps=("build", "compile"))
        return self.taken.call

    def forget(self) -> None:
        """Let go of what was built: nothing in memory may answer the next build."""
        if self.taken is not None:
            self.taken.build.forget()

    def wait(self, result: Any) -> None:
        """Return when `result` is there."""
        self.jax.block_until_ready(result)

    def done(self, result: Any) -> bool:
        """Tell whether every array of `result` is there."""
        return all(leaf.is_ready() for leaf in self.tree.tree_leaves(result))

    def fetch(self, result: Any) -> Any:
        """Return a result as NumPy arrays."""
        return self.jax.device_get(result)

    def problems(self, arguments: Any, result: Any) -> list[str]:
        """Return which arguments and results are not on the target's device."""
        wrong = []
        for name, leaf, kind in self.leaves(arguments, result):
            if not isinstance(leaf, self.jax.Array):
                wrong.append(f"transfer: {name} is a {kind}, not an array on the device")
                continue
            platforms = {device.platform for device in leaf.devices()}
            if platforms != {self.platform}:
                there = ", ".join(sorted(platforms))
                wrong.append(f"device: {name} is on {there}, not on {self.platform}")
        return wrong

    def cache_bytes(self) -> int | None:
        """Return the size of the cache that the device's cores share, where it is known."""
        return last_level_cache() if self.platform == "cpu" else l2_cache_bytes()

    def timed(self) -> AbstractContextManager[None]:
        """Forbid JAX to move data between host and device without being asked."""
        guard: AbstractContextManager[None] = self.jax.transfer_guard("disallow")
        return guard

    def built(self) -> str:
        """Return what JAX built since it was last asked, by its own events."""
        return evidence.contradiction(self.proof.take(), {}) or ""

    def load(self) -> Pass:
        """Write the program into a persistent cache of its own, and take the stage `load` from it.

        After the timing: what was compiled before is thrown out of memory. JAX's persistent cache
        is on meanwhile.
        """
        assert self.take is not None
        assert self.taken is not None
        program = fingerprint(self.taken.build.compiled)
        with temporary_folder() as scratch:
            for scenario in ("cold", "warm"):
                taken = self.take(scenario=scenario, folder=Path(scratch))
                if "compile" in taken.refused:
                    taken.refuse("load", f"nothing to load: {taken.refused['compile']}")
                    return taken
        if fingerprint(taken.build.compiled) != program:
            taken.refuse("load", "the cache answered with another program than was put into it")
        return taken
