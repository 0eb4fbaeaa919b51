"""The devices of a compile-only target, in the process that compiles for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
from jax.experimental import topologies as jax_topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from harness.targets.described_gpu import DEVICES_OF_A_GPU
from harness.targets.host import VIRTUAL_CPU_DEVICES

REASON_LENGTH = 300
"""Characters of a compiler's complaint that are shown: XLA appends whole programs and stacks."""


_TOOLS = ("ptxas", "libdevice")
TOOLS_REMEDY = "pip install nvidia-cuda-nvcc, which the extra 'targets' brings"


class Unusable(Exception):
    """Nothing can be compiled for the target in this process; the text says why."""


@dataclass(frozen=True)
class Topology:
    """The devices that a compile-only target stands for: enough to compile for, not to run on."""

    target: str
    devices: Sequence[Any]

    @property
    def device(self) -> Any:
        """The device that programs of one device are built for."""
        return self.devices[0]

    @property
    def several(self) -> Sequence[Any]:
        """The devices of the transform `sharded`: as many as a CPU has."""
        return self.devices[:VIRTUAL_CPU_DEVICES]

    @property
    def one(self) -> NamedSharding:
        """All of an array on the first device."""
        return NamedSharding(Mesh(self.devices[:1], ("devices",)), PartitionSpec())

    def naming_the_device(self) -> AbstractContextManager[Any]:
        """Let what is traced and lowered inside know the device: kernels in Pallas ask for it.

        Other programs are the same with it and without it; for a TPU only from jax 0.11 on.
        """
        if not self.target.startswith("gpu:") and jax.__version_info__ < (0, 11):
            return nullcontext()
        return jax.sharding.use_abstract_mesh(self.one.mesh.abstract_mesh)

    @property
    def not_run(self) -> str:
        """Why there is no `dispatch` and no `execute`."""
        return f"{self.target} is compiled for, not run: no such device here"

    def misplaced(self, compiled: Any) -> str:
        """Return what else than this target a program was built for; empty if it is right.

        JAX takes the device from the inputs that a function uses, and the CPU where it uses none.
        """
        used = {
            device
            for sharding in jax.tree_util.tree_leaves(compiled.output_shardings)
            for device in sharding.device_set
        }
        strangers = sorted({device.platform for device in used - set(self.devices)})
        if not strangers:
            return ""
        return (
            f"it was compiled for {', '.join(strangers)} and not for {self.target}: its function "
            "uses none of its inputs, and nothing else tells JAX what to compile for"
        )


def describe(target: str, description: str) -> Topology:
    """Return the devices of the compile-only target with that description; loads its compiler.

    Raises:
        Unusable: the compiler does not take the description, or cannot be loaded.
    """
    try:
        if target.startswith("gpu:"):
            topology = jax_topologies.get_topology_desc(
                platform="cuda", target_config=description, topology=f"1x{DEVICES_OF_A_GPU}x1"
            )
        else:
            topology = jax_topologies.get_topology_desc(platform="tpu", topology_name=description)
        devices: Sequence[Any] = topology.devices
    except Exception as error:  # jaxlib, a plugin and libtpu raise what they like
        raise unusable(target, error) from error
    if not devices[0].device_kind:  # XLA would crash when it compiles
        raise Unusable(
            f"{target}: its description has no device_description_str, so it is none of a device"
        )
    return Topology(target, devices)


def unusable(target: str, error: BaseException) -> Unusable:
    """Return the error that says so of a target, with what the compiler said, cut to a line."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    if len(reason) > REASON_LENGTH:
        reason = reason[:REASON_LENGTH] + " ..."
    if any(tool in reason for tool in _TOOLS):
        reason = f"XLA needs ptxas and libdevice of CUDA's toolkit: {TOOLS_REMEDY} ({reason})"
    return Unusable(f"nothing can be compiled for {target}: {reason}")


def check_process(target: str, platforms: str, environment: Mapping[str, str]) -> None:
    """Raise :class:`Unusable` unless this process has the environment that the target needs.

    The environment decides which plugin JAX loads; with another target's, the numbers would be
    filed under the wrong name.
    """
    wanted = {"JAX_PLATFORMS": platforms, **environment, "jax_platforms": platforms}
    there = {**os.environ, "jax_platforms": jax.config.values["jax_platforms"]}
    wrong = [name for name in wanted if there.get(name) != wanted[name]]
    if wrong:
        text = "; ".join(f"{name} is {there.get(name)!r}, not {wanted[name]!r}" for name in wrong)
        raise Unusable(
            f"the measuring process is not in the environment of {target}: {text}. Something that "
            "Python runs when it starts (sitecustomize, a .pth file) changed it, or JAX's settings."
        )


def check_device(target: str, description: str) -> None:
    """Raise :class:`Unusable` unless JAX's first device is of the target's kind.

    `description` is that of a compile-only target, whose process has the CPU alone. A plugin that
    cannot start leaves JAX with the CPU, and says so on stderr only.
    """
    wanted = "cpu" if description else target
    device = jax.devices()[0]
    if device.platform != wanted:
        raise Unusable(
            f"{target} was asked for, and JAX's first device is {device.device_kind!r} of the "
            f"platform {device.platform!r}: its plugin did not start."
        )
