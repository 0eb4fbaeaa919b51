"""What a backend must be able to do to take a side in a comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from harness.declare.workload import Case, Workload


class Unavailable(Exception):
    """A side cannot be taken here, which is no fault; the text is the reason ("n/a")."""


class Side(ABC):
    """One backend in a process of its own. The clock is that of whoever calls it.

    Whatever happens in `put`, `build`, `fetch` and `problems` is outside the clock.
    """

    name: ClassVar[str]
    asynchronous: ClassVar[bool] = False
    """Whether a call may return before it is done, in the order of calls (a GPU's stream). Where it
    is False every call is waited for, because independent calls might otherwise overlap."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries that compute."""

    @abstractmethod
    def put(self, arguments: Any) -> Any:
        """Return a pytree of NumPy arrays as arrays of the backend, on its device."""

    @abstractmethod
    def build(self, workload: type[Workload], case: Case, arguments: Any) -> Callable[..., Any]:
        """Return the function to call with what `put` returned.

        Raises:
            Unavailable: this backend has no way to compute the case.
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

    def problems(self, arguments: Any, result: Any) -> list[str]:
        """Return what is wrong with where arguments and results are; e.g. not on the device."""
        return []

    def labels(self) -> list[str]:
        """Return what a reader must know of this side's times, e.g. `fuse-fallback`."""
        return []

    def compiles(self) -> Mapping[str, int]:
        """Return what the backend has compiled so far, by `hits`, `misses`, `bytes`.

        Anything that grows inside a timed region makes the sample wrong.
        """
        return {}

    def timed(self) -> AbstractContextManager[None]:
        """Return what the timed region runs in: a watch that raises on what must not happen."""
        return nullcontext()

    def cache_bytes(self) -> int | None:
        """Return the size of the cache that rotating inputs must not fit into."""
        return None
