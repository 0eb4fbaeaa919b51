"""What a target is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """A place where a program is built and, if the hardware is there, run."""

    name: str
    platforms: str
    """What JAX_PLATFORMS is set to in a process that measures on this target."""
    lacking: Callable[[], str | None]
    """Why this machine does not have the target, or None if it seems to."""
    compile_only: str = ""
    """What the device is called where there is none: programs are built for it and not run."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that a process which builds for the target needs."""
    file: str = ""
    """The description of a compile-only device that the user gave."""
    description: str = ""
    """What tells the compiler of a compile-only device: the text of a GpuTargetConfigProto, or the
    name of a TPU topology. Empty for real ones."""
    devices: int = 0
    """How many devices the description stands for; 0 where only JAX knows."""

    @property
    def family(self) -> str:
        """`cpu`, `gpu` or `tpu`: what a workload that names the family is measured on."""
        return self.name.partition(":")[0]

    @property
    def digest(self) -> str:
        """Identify the description of a compile-only device; empty for real ones."""
        if not self.description:
            return ""
        return hashlib.sha256(self.description.encode()).hexdigest()[:16]
