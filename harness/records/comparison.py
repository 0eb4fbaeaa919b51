"""What a record of a comparison holds besides times: who computed, and whether it was right."""

from __future__ import annotations

import msgspec


class Comparison(msgspec.Struct, omit_defaults=True):
    """What one process found out about one backend's side of a comparison."""

    backend: str
    threads: str
    comparable: bool = False
    """Whether every check was passed; a ratio is only made of two sides that are comparable."""
    reasons: list[str] = msgspec.field(default_factory=list)
    """Which checks failed, and how."""
    labels: list[str] = msgspec.field(default_factory=list)
    """What the reader must know of the times: `cache-resident`, `host-bound`, `disturbed`."""
    error: float | None = None
    """Relative L2 distance to the float64 reference, the greatest over all outputs."""
    gate: float | None = None
    """The greatest error that passes, for the dtype and precision."""
    dtypes: list[str] = msgspec.field(default_factory=list)
    """Of the outputs."""
    cpu_per_wall: float | None = None
    """Seconds of CPU per second of wall in the timed region: how many cores were at work."""
    argument_bytes: int = 0
    output_bytes: int = 0
    rotated: int = 1
    """How many sets of inputs took turns."""
    cache_bytes: int | None = None
    """The last-level cache of the processor, or the L2 cache of the GPU."""
    operations: int | None = None
    """Array operations that the eager baseline makes: about one launch each."""
    traffic_bytes: int | None = None
    """Bytes that the eager baseline's operations read and write."""
    launches: int | None = None
    """Kernels that one call launched, where they were counted on the device."""
    device_ns: float | None = None
    """Time inside kernels per call, as the device counted it; not the headline."""
    compiles: dict[str, int] = msgspec.field(default_factory=dict)
    """What the backend's own kernel cache did: `hits`, `misses`, `bytes`."""
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    """Of the libraries that computed."""

    @property
    def least_bytes(self) -> int:
        """What any program must move: every input read once, every output written once."""
        return self.argument_bytes + self.output_bytes
