"""What makes building one program slow, as data: codes, places and numbers.

What its jaxpr shows (:class:`Structure`) is judged beside XLA's events of the compile. The words
are in :mod:`harness.output.compile`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from statistics import median

import msgspec

from harness.program.compiler.evidence import Experiment, measured
from harness.program.compiler.inside import Inside
from harness.program.compiler.places import Place
from harness.program.compiler.structure import LEAST_SHARE, Structure
from harness.program.compiler.tree import FOLDING

LEAST_BYTES = 2**20

_KERNELS = ("sort", "scatter")
"""Operations whose kernels cost much, by the beginning of JAX's name."""


class RemedyTrial(msgspec.Struct, omit_defaults=True):
    """What lower and compile took as the program is and with the remedy, built in turn."""

    before_s: list[float] = []
    after_s: list[float] = []
    untried: str = ""
    """Why it was not tried, as a code; empty where it was."""
    detail: str = ""
    """What JAX or a back end raised."""

    @property
    def saved_s(self) -> float | None:
        """What they took less with the remedy, between the medians; None where it was not tried."""
        return median(self.before_s) - median(self.after_s) if self.after_s else None

    @property
    def is_noise(self) -> bool:
        """Whether builds with the remedy and without it mix too much to differ.

        Of two programs that take as long, six builds each are so far apart twice in 100 times.
        """
        slower = sum(after >= before for before in self.before_s for after in self.after_s)
        pairs = len(self.before_s) * len(self.after_s)
        return min(slower, pairs - slower) > 0.1 * pairs


class CompileCause(msgspec.Struct, omit_defaults=True):
    """Something that makes building a program, or calling it, slow."""

    kind: str
    """`constants`, `folding`, `kernels`, `unrolled scan`, `sort`, `switch`, `loop`, `repeated`,
    `leaves`, `library`, `associative scan`, `dumps`; of calls `integer product`,
    `integer convolution`, `ragged dot`."""
    place: Place | None = None
    name: str = ""
    """Of the operation, of a product's dtype, or of the setting."""
    by: Place | None = None
    """Where a library traces it."""
    count: int = 0
    """Copies, turns, branches, leaves, arrays of a sort, or levels of an associative scan."""
    keys: int = 0
    """Arrays that a sort orders by."""
    is_same: bool = True
    """Whether all copies work on arrays of the same shapes, all branches do the same."""
    size_bytes: int = 0
    equations: int = 0
    """Of the program, that are of it; 0 where its cost is known by other means."""
    of: int = 0
    """Equations of the program."""
    cost_s: float | None = None
    """Of the compile's wall time that is known to be its; so much a remedy can save."""
    trial: RemedyTrial | None = None
    """None where there is no program of the harness's own that has the remedy."""
    measured: Experiment | None = None
    """The nearest experiment with its remedy, of whatever target and release."""
    is_verified: bool = False
    """Whether that was of this target and release."""

    @property
    def remedy(self) -> str:
        """Return the code of its remedy, by which experiments are called as well."""
        if self.kind == "kernels":
            return "sort" if self.name == "sort" else f"kernels of {self.name}"
        if self.kind == "sort" and self.keys > 1:
            return "sort by keys"
        return self.kind if self.is_same else _UNLIKE.get(self.kind, self.kind)

    def worth_s(self, build_s: float) -> float:
        """Return what a remedy saves of a build of `build_s`, as far as that is known."""
        if self.trial is not None and self.trial.saved_s is not None:
            return 0.0 if self.trial.is_noise else self.trial.saved_s
        share = self.equations / self.of if self.of else 0.0
        return share * build_s if self.cost_s is None else self.cost_s


_UNLIKE = {"loop": "loop of other shapes", "switch": "switch of other branches"}

FAMILIES = {
    "integer product": ("cpu",),
    "integer convolution": ("cpu",),
    "ragged dot": ("cpu", "gpu"),
}
"""Where something is slow, if not everywhere."""

decoded = msgspec.json.Decoder(Structure).decode
"""What :func:`harness.program.compiler.structure.encoded` made."""


def causes(made: Structure, inside: Inside, build_s: float, target: str = "") -> list[CompileCause]:
    """Return what makes a build or a call slow, as far as it is known, the most expensive first.

    `build_s` is what trace, lower and compile took together; `target` is what was compiled for,
    where that is not the platform of the process.
    """
    target = target or made.platform
    family = target.partition(":")[0]
    written = (one for one in made.causes if family in FAMILIES.get(one.kind, (family,)))
    every = [*_by_time(made, inside), *(CompileCause(**asdict(one)) for one in written)]
    for one in every:
        one.measured = nearest = measured(one.remedy, target, made.release)
        one.is_verified = nearest is not None and nearest[1:3] == (target, made.release)
    return sorted(every, key=lambda one: one.worth_s(build_s), reverse=True)


def _by_time(made: Structure, inside: Inside) -> Iterator[CompileCause]:
    least = LEAST_SHARE * inside.wall_s
    # XLA's client is handed all constants before it begins with a pass; folding is by itself.
    own_s = inside.tree.own_wall_s
    if made.constant_bytes >= LEAST_BYTES and own_s >= least:
        size = made.constant_bytes
        yield CompileCause("constants", made.constant_place, size_bytes=size, cost_s=own_s)
    folding_s = sum(one.wall_s for one in inside.groups if one.name == FOLDING)
    if folding_s >= least:
        yield CompileCause("folding", made.folded, cost_s=folding_s)
    for name in _KERNELS:
        costs: dict[Place, float] = defaultdict(float)
        for kernel in inside.kernels:
            written = "dynamic-update-slice" in kernel.name  # XLA has done it itself
            if kernel.op_name.rpartition("/")[2].startswith(name) and not written:
                costs[Place(kernel.function, kernel.file, kernel.line)] += kernel.wall_s
        for place, cost_s in costs.items():
            if cost_s >= least:
                yield CompileCause("kernels", place, name=name, cost_s=cost_s)
