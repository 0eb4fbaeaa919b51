"""Declare a workload: a JAX function under test, how its inputs are made, and its sweep axes."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import math
import operator
import re
import textwrap
import tokenize
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, ClassVar

from harness.errors import HarnessError

METHOD_VERSION = 1
"""Raised whenever numbers are taken differently, so that old and new ones are never compared."""

TRANSFORMS = ("forward", "gradient", "vmap", "sharded", "pmap")
"""What can be done to a workload's function before it is measured."""

SEVERAL_DEVICES = frozenset({"sharded", "pmap"})
"""Transforms that need a process with more than one device."""

RESERVED_AXES = frozenset(
    """
    machine commit commit_date started_at env python jax jaxlib workload version target transform
    scenario stage unit value calibrated low high n_processes samples status reason fingerprint
    effort dirty calibrated_samples case self
    """.split()  # noqa: SIM905 - a list of 27 lines would say no more
)
"""Names an axis cannot have, because the frame has a column of that name."""

NO_SOURCE = (OSError, TypeError, SyntaxError, tokenize.TokenError)
"""What `inspect` raises for a class whose text is not to be had: made by `type`, typed at a prompt,
or read from standard input (Python 3.13 then looks for it in another file)."""

Plain = str | int | float | bool | tuple[Any, ...]


class WorkloadError(HarnessError):
    """A workload is declared wrongly; the text says what, and where."""

    exit_code = 2


@dataclass(frozen=True)
class Spec:
    """An abstract input: a shape and a dtype, filled with seeded random data when it is needed.

    Attributes:
        shape: the sizes of the axes; `()` for a scalar.
        dtype: a NumPy or ml_dtypes name such as `"float32"` or `"bfloat16"`, or `"key"` for typed
            PRNG keys of JAX's default implementation.
        low: smallest value. Integers default to 0; floats are standard normal unless given.
        high: bound that is not reached. Integers default to 100.
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

    @property
    def coordinates(self) -> dict[str, Plain]:
        """The axes, then transform and target: the order of asv's parameters."""
        return {**self.axes, "transform": self.transform, "target": self.target}

    @property
    def id(self) -> str:
        """A name that no other case of the workload has; values are shown as Python writes them."""
        return ", ".join(f"{name}={value!r}" for name, value in self.coordinates.items())


class Workload(ABC):
    """A JAX function under test. Subclass it, one class of about 15 lines per function.

    Class attributes:
        sweep: axis name to the values it takes. Plain values only (str, int, float, bool, tuples
            of them): asv stores their `repr` and finds them by position.
        static: the axes that `function` gets as static keyword arguments.
        donate: the parameters of `function` whose buffers are donated.
        transforms: which of `TRANSFORMS` are measured.
        targets: where the program is built and run; what a machine lacks is skipped with a reason.
        vmap_batch: size of the leading axis that `vmap` adds.
        x64: whether the process that measures enables 64-bit types (`jax_enable_x64`).
        process_stages: whether asv shows, beside this workload's stages, what its processes paid
            once (import, backend, first_lower, first_compile).
        timeout_s: how long one pass over one case may take before its process is stopped.
    """

    sweep: ClassVar[Mapping[str, Sequence[Plain]]] = {}
    static: ClassVar[Sequence[str]] = ()
    donate: ClassVar[Sequence[str]] = ()
    transforms: ClassVar[Sequence[str]] = ("forward",)
    targets: ClassVar[Sequence[str]] = ("cpu", "gpu", "tpu")
    vmap_batch: ClassVar[int] = 8
    x64: ClassVar[bool] = False
    process_stages: ClassVar[bool] = False
    timeout_s: ClassVar[float] = 120.0

    @abstractmethod
    def inputs(self, *args: Any, **axes: Any) -> Any:
        """Return the inputs of one case: specs or arrays, or pytrees of them.

        A tuple holds the positional arguments of `function`; anything else is its one argument.
        It gets the axes that its signature names.
        """

    @staticmethod
    @abstractmethod
    def function(*args: Any, **static: Any) -> Any:
        """Compute the result; jitted by the harness, so it must be traceable by JAX."""

    def skip(self, *args: Any, **case: Any) -> str | None:
        """Return why a case is not to be measured, or None. Gets its axes, transform and target."""
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for hook in declaration_hooks:
            hook(cls)


declaration_hooks: list[Callable[[type[Workload]], None]] = []
"""Called with every workload as it is declared; higher floors, such as the asv adapter, add one."""


def name_of(workload: type[Workload]) -> str:
    """Return `module.Class`, relative to the folder of benchmarks as asv writes it."""
    module = workload.__module__
    relative = module.split(".", 1)[1] if "." in module else module
    return f"{relative}.{workload.__qualname__.replace('.<locals>', '')}"


def where(workload: type[Workload]) -> str:
    """Return the name and, if it can be found, the file and line of a workload, for messages."""
    try:
        file = inspect.getsourcefile(workload) or "?"
        line = inspect.getsourcelines(workload)[1]
    except NO_SOURCE:
        return f"{workload.__qualname__} (in {workload.__module__})"
    return f"{workload.__qualname__} ({file}:{line})"


def check(workload: type[Workload]) -> None:
    """Raise :class:`WorkloadError` if the declaration is wrong; nothing is traced."""
    check_declaration(workload)
    for _ in enumerate_cases(workload):
        pass


def check_declaration(workload: type[Workload]) -> None:
    """Check everything about a workload that does not depend on a case."""
    here = where(workload)
    if inspect.isabstract(workload):
        missing = ", ".join(sorted(workload.__abstractmethods__))
        raise WorkloadError(f"{here} does not define {missing}; a workload needs both.")
    if "-" in name_of(workload):
        raise WorkloadError(
            f"{here}: its name {name_of(workload)!r} holds '-', which asv uses to number "
            "parameters; rename the class or the module."
        )
    if not isinstance(workload.sweep, Mapping):
        raise WorkloadError(
            f"{here}: sweep is {workload.sweep!r}; expected a mapping from axis name to values."
        )
    for axis, values in workload.sweep.items():
        _check_axis(here, axis, values)
    for attribute in ("static", "donate", "transforms", "targets"):
        _check_names(here, attribute, getattr(workload, attribute))
    for transform in workload.transforms:
        if transform not in TRANSFORMS:
            raise WorkloadError(
                f"{here}: transforms names {transform!r}; known are {', '.join(TRANSFORMS)}."
            )
    _check_signatures(workload, here)


def _check_names(here: str, attribute: str, value: object) -> None:
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(name, str) for name in value)
    ):
        raise WorkloadError(
            f"{here}: {attribute} is {value!r}; expected a sequence of names, such as "
            f"({str(value)!r},)."
        )
    if attribute in ("transforms", "targets") and not value:
        raise WorkloadError(f"{here}: {attribute} is empty, so there would be no case.")
    for name in value:
        if list(value).count(name) > 1:
            raise WorkloadError(f"{here}: {attribute} names {name!r} twice.")


def _check_axis(here: str, axis: object, values: object) -> None:
    if not isinstance(axis, str) or not axis.isidentifier():
        raise WorkloadError(f"{here}: axis {axis!r} is no identifier; it becomes an argument name.")
    if axis in RESERVED_AXES:
        raise WorkloadError(
            f"{here}: axis {axis!r} has the name of a column of the frame; choose another."
        )
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise WorkloadError(
            f"{here}: axis {axis!r} has {values!r}; expected a list of the values it takes."
        )
    if not values:
        raise WorkloadError(f"{here}: axis {axis!r} has no values, so there would be no case.")
    seen: set[str] = set()
    for value in values:
        if not _is_plain(value):
            raise WorkloadError(
                f"{here}: axis {axis!r} has the value {value!r} of type {type(value).__name__}; "
                "expected str, int, float, bool or a tuple of them. Name the thing by a plain "
                "value, and build it in inputs or function."
            )
        if repr(value) in seen:
            raise WorkloadError(
                f"{here}: axis {axis!r} has the value {value!r} twice: two cases would have one "
                "identity."
            )
        seen.add(repr(value))


def _is_plain(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    if type(value) is float:
        return math.isfinite(value)
    return type(value) in (str, int, bool)


def _check_signatures(workload: type[Workload], here: str) -> None:
    axes = set(workload.sweep)
    parameters, takes_any = _keywords(workload.function)
    for name in workload.static:
        if name not in axes:
            raise WorkloadError(
                f"{here}: static names {name!r}, which is no axis of its sweep; the axes are "
                f"{sorted(axes)}."
            )
        if name not in parameters and not takes_any:
            raise WorkloadError(
                f"{here}: static names {name!r}, which function does not take; its parameters are "
                f"{parameters}."
            )
    for name in workload.donate:
        if name not in parameters:
            raise WorkloadError(
                f"{here}: donate names {name!r}, which is no parameter of function; they are "
                f"{parameters}."
            )
    inputs = workload().inputs  # bound: without self, and whether it needs self or not
    wanted, inputs_takes_any = _keywords(inputs)
    for name in wanted:
        if name not in axes and _is_required(inputs, name):
            raise WorkloadError(
                f"{here}: inputs wants {name!r}, which is no axis of its sweep; the axes are "
                f"{sorted(axes)}."
            )
    for axis in workload.sweep:
        if axis not in wanted and not inputs_takes_any and axis not in workload.static:
            raise WorkloadError(
                f"{here}: axis {axis!r} reaches neither inputs (which takes {wanted}) nor function "
                "(it is not static), so its values would all measure the same."
            )


def _keywords(function: Callable[..., Any]) -> tuple[list[str], bool]:
    """Return the names a function takes, and whether it takes any keyword."""
    kinds = inspect.Parameter
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
    return names, any(p.kind is kinds.VAR_KEYWORD for p in parameters)


def _is_required(function: Callable[..., Any], name: str) -> bool:
    return inspect.signature(function).parameters[name].default is inspect.Parameter.empty


def enumerate_cases(workload: type[Workload]) -> Iterator[Case]:
    """Yield the cases of a workload, in the order of asv's parameters (last axis fastest)."""
    names = list(workload.sweep)
    points = itertools.product(*workload.sweep.values(), workload.transforms, workload.targets)
    for *values, transform, target in points:
        yield Case(dict(zip(names, values, strict=True)), str(transform), str(target))


def skip_reason(workload: type[Workload], case: Case) -> str | None:
    """Ask a workload whether it wants a case measured."""
    reason = workload().skip(**case.coordinates)
    if reason is not None and not isinstance(reason, str):
        raise WorkloadError(
            f"{where(workload)}: skip returned {reason!r} for {case.id}; expected the reason as "
            "text, or None."
        )
    return reason


def static_arguments(workload: type[Workload], case: Case) -> dict[str, Plain]:
    """Return the keyword arguments that `function` gets as static ones."""
    return {name: case.axes[name] for name in workload.static}


def make_inputs(workload: type[Workload], case: Case) -> tuple[Any, ...]:
    """Return the positional arguments of `function`, as pytrees of specs or arrays."""
    inputs = workload().inputs
    wanted, takes_any = _keywords(inputs)
    axes = {name: value for name, value in case.axes.items() if takes_any or name in wanted}
    made = inputs(**axes)
    arguments = made if type(made) is tuple else (made,)
    static = static_arguments(workload, case)
    try:
        inspect.signature(workload.function).bind(*arguments, **static)
    except TypeError as error:
        raise WorkloadError(
            f"{where(workload)}: function does not accept the inputs of {case.id}: {error}. inputs "
            f"made {len(arguments)} positional argument(s), static adds {sorted(static)}; a tuple "
            "holds the arguments, anything else is the one argument."
        ) from None
    return arguments


def version_of(workload: type[Workload]) -> str:
    """Return a version that changes with the workload's source or with how numbers are taken."""
    text = f"method {METHOD_VERSION}\n{source_of(workload)}"
    return f"{METHOD_VERSION}.{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def source_of(workload: type[Workload]) -> str:
    """Return the source that defines a workload: its classes, and `function` if it is elsewhere."""
    pieces: list[str] = []
    for cls in workload.__mro__:
        if cls not in Workload.__mro__:
            pieces.append(_source_of_class(cls) or _source_of_members(cls))
    function = _source(workload.function)
    if function and not any(function in piece for piece in pieces):
        pieces.append(function)
    return "\n".join(pieces)


def _source(thing: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(thing)).strip()
    except NO_SOURCE:
        return ""


def _source_of_class(cls: type) -> str:
    try:
        file = inspect.getsourcefile(cls)
    except (OSError, TypeError):
        return ""
    for value in vars(cls).values():
        function = getattr(value, "__func__", value)
        if (
            inspect.isfunction(function)
            and function.__qualname__.startswith(f"{cls.__qualname__}.")
            and function.__code__.co_filename.startswith("<")
            and function.__code__.co_filename != file
        ):
            return ""  # Python 3.13 takes the lines of the module's file for those of an `exec`
    return _source(cls)


def _source_of_members(cls: type) -> str:
    """Describe a class whose text is not to be had (made by `type`, typed at a prompt)."""
    lines = [f"class {cls.__name__}:"]
    for name, value in sorted(vars(cls).items()):
        if name.startswith("_") or name.startswith("track_") or name == "setup_cache":
            continue
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function):
            defaults = _without_address((function.__defaults__, function.__kwdefaults__))
            lines.append(
                _source(function) or f"{name}: {_source_of_code(function.__code__)} {defaults}"
            )
        else:
            lines.append(f"{name} = {_without_address(value)}")
    return "\n".join(lines)


def _source_of_code(code: CodeType) -> str:
    """Describe code whose text is not to be had, alike in every process."""
    constants = ", ".join(map(_constant, code.co_consts))
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} ({constants})"


def _constant(value: object) -> str:
    if isinstance(value, CodeType):
        return _source_of_code(value)
    if isinstance(value, frozenset):  # its order changes from process to process
        return f"{{{', '.join(sorted(map(_constant, value)))}}}"
    return repr(value)


def _without_address(value: object) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
