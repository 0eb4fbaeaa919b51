"""The parts that a wall time is made of, and what a total says of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from harness.profiles.totals.pieces import STAGES

SAMPLED = ("jax", "library", "program")
"""Where the program was outside builds, by whose code was innermost."""

PARTS = {
    "python": "from the start of the process until recording began",
    "import": "`import jax`",
    "backend": "JAX made its backends",
    "trace": "Python functions became jaxprs",
    "lower": "jaxprs became StableHLO",
    "compile": "StableHLO became programs, in XLA",
    "load": "programs came from the persistent cache",
    "write": "programs were written to the persistent cache",
    "other": "the rest of calls that built: arguments, dispatch, the first run until it returned",
    "profile": "the profile's own cost",
    "jax": "outside builds, in JAX: dispatch, waiting for results (sampled)",
    "library": "outside builds, in libraries and Python's own modules (sampled)",
    "program": "outside builds, in the program's own code (sampled)",
    "end": "from the end of recording until the process was gone",
    "unattributed": "nothing recorded says what it was",
}
"""The parts of a total, in the order in which they are shown, and what each one is."""


@dataclass(frozen=True)
class Total:
    """The wall time of one run, process or thread, and its parts."""

    scope: Literal["run", "process", "thread"]
    process: str
    """Empty for a run."""
    thread: int
    """0 for a run or process."""
    begin_ns: int
    end_ns: int
    seconds: dict[str, float]
    """Of every part of :data:`PARTS`; none is negative, and their sum is the wall time."""
    samples: dict[str, int] = field(default_factory=dict)
    """What :data:`SAMPLED` parts rest on."""
    cut_off: bool = False
    """The log has no end: the total reaches until its last line."""
    main: bool = False
    """Of a thread: it is the main one."""

    @property
    def wall_s(self) -> float:
        """From begin to end."""
        return (self.end_ns - self.begin_ns) / 1e9

    @property
    def build_s(self) -> float:
        """Of it, what went into tracing, lowering, compiling, loading and writing."""
        return sum(self.seconds[stage] for stage in STAGES)

    @property
    def outside_s(self) -> float:
        """Of it, what the program itself took outside builds, as far as it was sampled."""
        return sum(self.seconds[part] for part in SAMPLED)

    def interval(self, part: str) -> tuple[float, float]:
        """Return the 95 % interval of a part's seconds; both ends are its seconds unless sampled.

        Clopper and Pearson's interval of the share of samples, times the seconds that all samples
        stand for. It takes samples as independent; those of one long wait are not.
        """
        from scipy.special import betaincinv

        value, n = self.seconds[part], sum(self.samples.values())
        if part not in SAMPLED or not n:
            return value, value
        k = self.samples.get(part, 0)
        low = float(betaincinv(k, n - k + 1, 0.025)) if k else 0.0
        high = float(betaincinv(k + 1, n - k, 0.975)) if k < n else 1.0
        return min(value, low * self.outside_s), max(value, high * self.outside_s)
