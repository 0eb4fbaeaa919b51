"""What a target is: a place where a program is built and, if the hardware is there, run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """One target. Its family (`gpu` of `gpu:h200`) is what workloads name."""

    name: str
    platforms: str
    """What JAX_PLATFORMS is set to in a process that measures on this target."""
    lacking: Callable[[], str | None]
    """Why this machine does not have the target, or None if it seems to."""
    absent: Callable[[], bool] = lambda: False
    """Whether this machine cannot have it, whatever is installed: the same in all its processes."""
    words: Callable[[], str] | None = field(default=None, compare=False)
    """Returns the device in words; None where only JAX knows what it is."""
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
    """How many devices it has; 0 where only JAX knows."""

    def __post_init__(self) -> None:
        if bool(self.compile_only) != bool(self.description):
            lacks = "description" if self.compile_only else "compile_only"
            raise TypeError(f"the target {self.name!r} lacks {lacks}: give both, or neither")

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
