"""Declare a workload: a JAX function under test, how its inputs are made, and its sweep axes."""

from __future__ import annotations

import inspect
import itertools
import operator
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.errors import ExitCode, HarnessError
from harness.workload.axes import Axis, Plain, given, shown
from harness.workload.source import NO_SOURCE, source_lines

TRANSFORMS = ("forward", "gradient", "vmap", "sharded", "pmap")
"""What can be done to a workload's function before it is measured."""

PRECISIONS = {"ieee": "highest", "tf32": "tensorfloat32", "bf16": "bfloat16"}
"""How exactly float32 matrix products are computed, and what JAX calls it."""

SEVERAL_DEVICES = frozenset({"sharded", "pmap"})
"""Transforms that need a process with more than one device."""


class WorkloadError(HarnessError):
    """A workload is declared wrongly; the text says what, and where."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class Spec:
    """An abstract input: a shape and a dtype, filled with seeded random data when it is needed.

    Attributes:
        shape: the sizes of the axes; `()` for a scalar.
        dtype: a NumPy or ml_dtypes name such as `"float32"` or `"bfloat16"`, or `"key"` for typed
            PRNG keys of JAX's default implementation.
        low: smallest value. Integers default to 0; floats are standard normal unless given.
        high: bound that is not reached. Integers default to 100, or to what a narrow dtype holds.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float | None = None
    high: float | None = None


def spec(
    shape: Sequence[int],
    dtype: str = "float32",
    low: float | None = None,
    high: float | None = None,
) -> Spec:
    """Describe an input without making it; see :class:`Spec` for what the arguments mean."""
    try:
        sizes = tuple(map(operator.index, shape))
    except TypeError:
        raise WorkloadError(
            f"spec: shape is {shape!r}; expected a sequence of sizes such as (1024, 256), "
            "or () for a scalar."
        ) from None
    if any(size < 0 for size in sizes):
        raise WorkloadError(f"spec: shape is {sizes}; sizes cannot be negative.")
    if (low is None) != (high is None):
        raise WorkloadError(f"spec: low is {low!r} and high is {high!r}; give both or neither.")
    return Spec(sizes, str(dtype), low, high)


@dataclass(frozen=True)
class Case:
    """One point of a workload's sweep on one target."""

    axes: Mapping[str, Plain] = field(default_factory=dict)
    transform: str = "forward"
    target: str = "cpu"
    precision: str = ""
    """One of :data:`PRECISIONS`, or empty for a workload that does not sweep it."""

    @property
    def coordinates(self) -> dict[str, Plain]:
        """The axes, then precision, transform and target: the order of asv's parameters."""
        precision = {"precision": self.precision} if self.precision else {}
        return {**self.axes, **precision, "transform": self.transform, "target": self.target}

    @property
    def label(self) -> str:
        """A short text for people: what is usual (forward, cpu) is left out."""
        unusual = {
            name: value
            for name, value in self.coordinates.items()
            if (name, value) not in (("transform", "forward"), ("target", "cpu"))
        }
        return ", ".join(f"{name}={shown(value)}" for name, value in unusual.items())

    @property
    def id(self) -> str:
        """A name that no other case of the workload has; values are shown as Python writes them."""
        return ", ".join(f"{name}={value!r}" for name, value in self.coordinates.items())


@dataclass(frozen=True)
class CallArguments:
    """What `function` is called with, by position and by keyword; see :func:`arguments`."""

    args: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The keywords, in the order that JAX flattens them in."""
        return tuple(sorted(self.keywords))

    @property
    def flat(self) -> tuple[Any, ...]:
        """All of them, those by keyword last and in the order of their names."""
        return (*self.args, *(self.keywords[name] for name in self.names))


def arguments(*args: Any, **keywords: Any) -> CallArguments:
    """Return what `inputs` returns where `function` takes arrays by keyword.

    A static argument is none of them: that is an axis which `static` names.
    """
    return CallArguments(args, keywords)


class Workload(ABC):
    """A JAX function under test. Subclass it, one class of about 15 lines per function.

    Attributes:
        sweep: axis name to the values it takes: a list of plain ones (str, int, float, bool, tuples
            of them), since asv stores their `repr` and finds them by position; or a mapping from
            plain names to what they stand for, see :mod:`harness.workload.axes`.
        static: the axes that `function` gets as static keyword arguments.
        donate: the parameters of `function` whose buffers are donated.
        transforms: which are measured of `forward`, `gradient`, `vmap`, `sharded`, `pmap`.
        precisions: which of `ieee`, `tf32`, `bf16` matrix products are measured in; none leaves it
            to JAX.
        targets: where the program is built and run; what a machine lacks is skipped with a reason.
            A family (`gpu`) stands for its compile-only targets (`gpu:h200`) as well, where one is
            asked for by name.
        scenarios: what its processes find when they start, of `off`, `cold`, `warm`, `default`,
            `exported`, `executable`; see docs/method.md.
        depends_on: what the program depends on besides code: `env:NAME` for an environment
            variable, else a file, by its path from the project's folder (the git repository's,
            else the one that the module is imported from). Where one has changed, it is measured
            anew.
        first_calls: how many processes of its own a case gets that take its first call, per
            scenario; 0 leaves first calls out, None leaves it to effort and scenario.
        vmap_batch: size of the leading axis that `vmap` adds.
        x64: whether the process that measures enables 64-bit types (`jax_enable_x64`).
        process_stages: whether asv shows, beside this workload's stages, what its processes paid
            once (import, backend, first_lower, first_compile).
        timeout_s: how long one pass over one case may take before its process is stopped.
    """

    sweep: ClassVar[Mapping[str, Axis]] = {}
    static: ClassVar[Sequence[str]] = ()
    donate: ClassVar[Sequence[str]] = ()
    transforms: ClassVar[Sequence[str]] = ("forward",)
    precisions: ClassVar[Sequence[str]] = ()
    targets: ClassVar[Sequence[str]] = ("cpu", "gpu", "tpu")
    scenarios: ClassVar[Sequence[str]] = ("off",)
    depends_on: ClassVar[Sequence[str]] = ()
    first_calls: ClassVar[int | None] = None
    vmap_batch: ClassVar[int] = 8
    x64: ClassVar[bool] = False
    process_stages: ClassVar[bool] = False
    timeout_s: ClassVar[float] = 120.0

    @abstractmethod
    def inputs(self, *args: Any, **axes: Any) -> Any:
        """Return the inputs of one case: specs or arrays, or pytrees of them.

        A tuple holds the positional arguments of `function`, :func:`arguments` those by keyword as
        well; anything else is its one argument.
        It gets the axes that its signature names.
        """

    @staticmethod
    @abstractmethod
    def function(*args: Any, **static: Any) -> Any:
        """Compute the result; jitted by the harness, so it must be traceable by JAX."""

    baseline: ClassVar[Callable[..., Any] | None] = None
    """A static method `baseline(xp, ...)` with the inputs of `function`: the same computation,
    written once against the array API. `xp` is NumPy or CuPy, with `erf`, `expit` and `logsumexp`
    besides; see :func:`harness.baselines.side.namespace`."""

    fused_cpu: ClassVar[Callable[[], Callable[..., Any]] | None] = None
    """A static method that imports numexpr or numba, and returns a function with the inputs of
    `function`: the baseline by somebody who cares for speed."""

    fused_gpu: ClassVar[Callable[[], Callable[..., Any]] | None] = None
    """As `fused_cpu`, with hand-written kernels in CuPy. Without one, `cupy.fuse` is tried."""

    reference: ClassVar[Callable[..., Any] | None] = None
    """A static method `reference(np, ...)` that both sides are judged against, in float64; without
    one it is `baseline`."""

    def skip(self, *args: Any, **case: Any) -> str | None:
        """Return why a case is not to be measured, or None.

        It gets what `inputs` may ask for, with the transform and the target.
        """
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__ == "abc":  # where `type(NAME, BASES, {})` says that an ABC is made
            cls.__module__ = _caller_of_abc()
        for hook in declaration_hooks if declaration_hooks.called else ():
            hook(cls)


def _caller_of_abc() -> str:
    """Return the module that calls `type` to make a class, as `collections.namedtuple` finds it."""
    frames = traceback.walk_stack(sys._getframe())
    names = [str(frame.f_globals.get("__name__")) for frame, _ in frames]
    return next(name for name in names[names.index("abc") :] if name not in ("abc", "types"))


class Hooks(list[Callable[[type[Workload]], None]]):
    """What higher floors, such as the asv adapter, have called with every workload."""

    called = True
    """False in a measuring process, which needs workloads and nothing that is made of them."""


declaration_hooks = Hooks()
"""Called with every workload as it is declared."""


def name_of(workload: type[Workload]) -> str:
    """Return `module.Class`, relative to the folder of benchmarks as asv writes it."""
    module = workload.__module__
    relative = module.split(".", 1)[1] if "." in module else module
    return f"{relative}.{workload.__qualname__.replace('.<locals>', '')}"


def where(workload: type[Workload]) -> str:
    """Return the name and, if it can be found, the file and line of a workload, for messages."""
    try:
        file = inspect.getsourcefile(workload) or "?"
        line = source_lines(workload)[1]
    except NO_SOURCE:
        return f"{workload.__qualname__} (in {workload.__module__})"
    return f"{workload.__qualname__} ({file}:{line})"


def keywords(function: Callable[..., Any]) -> tuple[list[str], bool]:
    """Return the names a function takes, and whether it takes any keyword."""
    kinds = inspect.Parameter
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
    return names, any(p.kind is kinds.VAR_KEYWORD for p in parameters)


def enumerate_cases(
    workload: type[Workload], targets: Sequence[str] | None = None
) -> Iterator[Case]:
    """Yield the cases of a workload, in the order of asv's parameters (last axis fastest).

    `targets` replaces the workload's own.
    """
    names = list(workload.sweep)
    points = itertools.product(
        *workload.sweep.values(),
        workload.precisions or ("",),
        workload.transforms,
        workload.targets if targets is None else targets,
    )
    for *values, precision, transform, target in points:
        axes = dict(zip(names, values, strict=True))
        yield Case(axes, str(transform), str(target), str(precision))


def skip_reason(workload: type[Workload], case: Case) -> str | None:
    """Ask a workload whether it wants a case measured."""
    reason = workload().skip(**{**case.coordinates, **given(workload.sweep, case.axes)})
    if reason is not None and not isinstance(reason, str):
        raise WorkloadError(
            f"{where(workload)}: skip returned {reason!r} for {case.id}; expected the reason as "
            "text, or None."
        )
    return reason


def static_arguments(workload: type[Workload], case: Case) -> dict[str, Any]:
    """Return the keyword arguments that `function` gets as static ones."""
    arguments = given(workload.sweep, case.axes)
    return {name: arguments[name] for name in workload.static}


def make_arguments(workload: type[Workload], case: Case) -> CallArguments:
    """Return the arguments of `function` but the static ones, as pytrees of specs or arrays."""
    inputs = workload().inputs
    wanted, takes_any = keywords(inputs)
    arguments = given(workload.sweep, case.axes).items()
    made = inputs(**{name: value for name, value in arguments if takes_any or name in wanted})
    if not isinstance(made, CallArguments):
        made = CallArguments(made if type(made) is tuple else (made,))
    static = static_arguments(workload, case)
    try:
        inspect.signature(workload.function).bind(*made.args, **made.keywords, **static)
    except TypeError as error:
        by_keyword = f", {list(made.names)} by keyword" if made.names else ""
        raise WorkloadError(
            f"{where(workload)}: function does not accept the inputs of {case.id}: {error}. inputs "
            f"made {len(made.args)} positional argument(s){by_keyword}, static adds "
            f"{sorted(static)}; a tuple holds the arguments, anything else is the one argument."
        ) from None
    return made
