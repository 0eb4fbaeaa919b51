"""What a side of a comparison is: who computes a case, and everything that is known of it.

A side is one class in one file, and one line in :mod:`harness.baselines.registry`. Its file imports
nothing that reads an environment variable: that is for the process that takes the side, once its
environment is verified.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from harness.workload.workload import Case, Workload


SPECIAL = ("erf", "expit", "logsumexp")
"""What the array API lacks and baselines need, from `scipy.special` or `cupyx.scipy.special`."""

_SPECIAL_OF = {"numpy": "scipy.special", "cupy": "cupyx.scipy.special"}


_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}

_L2_CACHE_SIZE = 38
"""CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE."""


class Unavailable(Exception):
    """A side cannot be taken here, which is no fault; the text is the reason ("n/a")."""


class Side(ABC):
    """One who computes, in a process of its own. The clock is that of whoever calls it.

    Whatever happens in `put`, `build`, `fetch` and `problems` is outside the clock.
    """

    # What each side says of itself

    name: ClassVar[str]
    """What records, tables and options call it."""
    families: ClassVar[Sequence[str]]
    """The families of targets on which it is measured: of `cpu`, `gpu`, `tpu`."""
    colour: ClassVar[str]
    """Of Okabe and Ito's palette where it has one: told apart with any colour vision."""

    # What is so for most

    uses_jax: ClassVar[bool] = False
    """JAX has the target's device in this side's process; elsewhere it is kept on the CPU."""
    ahead_of_time: ClassVar[bool] = False
    """Built stage by stage before it is called. What others compile, their first call compiles."""
    eager: ClassVar[bool] = False
    """It makes one array operation after another, as the baseline is written."""
    rounds_narrow_sums: ClassVar[bool] = False
    """It rounds sums of types narrower than float32 after every step: no baseline for them."""
    asynchronous: bool = False
    """Whether a call may return before it is done, in the order of calls (a GPU's stream). Where it
    is False every call is waited for, because independent calls might otherwise overlap."""
    scenarios: ClassVar[Sequence[str]] = ("off",)
    """The states of its own cache of compiled kernels, a process for each."""
    one_precision: ClassVar[bool] = False
    """The environment decides on the precision of products, so each has processes of its own."""
    owns: ClassVar[Sequence[str]] = ()
    """Beginnings of the variables that it decides on: the caller's do not reach its process."""

    @classmethod
    def measures(cls, workload: type[Workload]) -> bool:
        """Tell whether a workload declares what this side computes."""
        return workload.baseline is not None

    @classmethod
    def environment(cls, precision: str, folder: str) -> dict[str, str]:
        """Return the variables that its process needs, besides those of threads.

        `folder` is where it keeps the kernels that it compiles.
        """
        return {}

    # What a process does with it

    @abstractmethod
    def __init__(self, target: str) -> None:
        """Wake what computes, on the target `cpu` or `gpu`.

        Raises:
            Unavailable: this machine or environment lacks what it needs.
            RuntimeError: JAX found no device of the target.
        """

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries that compute."""

    @abstractmethod
    def put(self, arguments: Any) -> Any:
        """Return a pytree of NumPy arrays as arrays of the side, on its device."""

    @abstractmethod
    def build(self, workload: type[Workload], case: Case, arguments: Any) -> Callable[..., Any]:
        """Return the function to call with what `put` returned.

        Raises:
            Unavailable: this side has no way to compute the case.
        """

    @abstractmethod
    def wait(self, result: Any) -> None:
        """Return when everything that was asked for, `result` included, is done."""

    @abstractmethod
    def done(self, result: Any) -> bool:
        """Tell whether `result` is complete, without waiting: the check that `wait` waits."""

    @abstractmethod
    def fetch(self, result: Any) -> Any:
        """Return a result as a pytree of NumPy arrays."""

    @cached_property
    def tree(self) -> Any:
        """JAX's functions of pytrees, which wake no back end; JAX reads variables when imported."""
        from jax import tree_util  # as the docstring says

        return tree_util

    def leaves(self, arguments: Any, result: Any) -> Iterator[tuple[str, Any, str]]:
        """Yield each array with what it is called, such as `argument 0`, and its type's name."""
        for what, tree in (("argument", arguments), ("result", result)):
            for index, leaf in enumerate(self.tree.tree_leaves(tree)):
                yield f"{what} {index}", leaf, f"{type(leaf).__module__}.{type(leaf).__name__}"

    def problems(self, arguments: Any, result: Any) -> list[str]:
        """Return what is wrong with where arguments and results are; e.g. not on the device."""
        return []

    def labels(self) -> list[str]:
        """Return what a reader must know of this side's times, e.g. `fuse-fallback`."""
        return []

    def compiles(self) -> Mapping[str, int]:
        """Return what the side has compiled so far, by `hits`, `misses`, `bytes`.

        Anything that grows inside a timed region makes the sample wrong.
        """
        return {}

    def built(self) -> str:
        """Return what was built since it was last asked, where the side is told by events."""
        return ""

    def timed(self) -> AbstractContextManager[None]:
        """Return what the timed region runs in: a watch that raises on what must not happen."""
        return nullcontext()

    def cache_bytes(self) -> int | None:
        """Return the size of the cache that rotating inputs must not fit into."""
        return None


def namespace(library: str) -> Any:
    """Return `xp`, that a baseline is written against, for `numpy` or `cupy`.

    It has every name of `array_api_compat`'s namespace, and :data:`SPECIAL`.
    """
    try:
        compat = importlib.import_module(f"array_api_compat.{library}")
    except ImportError as error:
        raise Unavailable(
            f"array-api-compat cannot be imported for {library} ({error}); it is a "
            "dependency of the harness, so install that again"
        ) from error
    special = importlib.import_module(_SPECIAL_OF[library])
    names = {key: value for key, value in vars(compat).items() if not key.startswith("__")}
    names |= {key: getattr(special, key) for key in SPECIAL}
    return SimpleNamespace(**names)


def last_level_cache() -> int | None:
    """Return the size in bytes of the first processor's largest cache, or None if unknown."""
    sizes = []
    for file in _CACHES.glob("index*/size"):  # Linux
        text = file.read_text().strip()
        if text[:-1].isdecimal() and text[-1] in _UNITS:
            sizes.append(int(text[:-1]) * _UNITS[text[-1]])
    name = "SC_LEVEL3_CACHE_SIZE"
    if not sizes and name in getattr(os, "sysconf_names", {}):
        return os.sysconf(name) or None
    return max(sizes, default=None)


def l2_cache_bytes() -> int | None:
    """Return the size of the first GPU's L2 cache, which JAX does not tell: of the driver.

    None where there is no NVIDIA driver or device. No context is made on the device.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    size, handle = ctypes.c_int(), ctypes.c_int()
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(handle), 0)
        or driver.cuDeviceGetAttribute(ctypes.byref(size), _L2_CACHE_SIZE, handle)
    )
    return None if failed or size.value <= 0 else size.value
