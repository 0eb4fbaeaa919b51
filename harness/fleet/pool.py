"""How a client reaches workers: what every kind of pool can do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from harness.errors import FleetError


class Seat(NamedTuple):
    """Who has an address."""

    id: str
    """Which of the workers that have had it, one after the other."""
    resources: Mapping[str, float] | None
    """What it is there for, by Dask's `--resources`; None where it takes what it can."""


class Pool(Protocol):
    """Workers that answer questions and carry orders out."""

    name: str
    """What it is called in messages, such as the scheduler's address."""
    chooses: bool
    """Whether an order reaches the worker that it is for; else it may land on another one."""

    def workers(self) -> dict[str, Seat]:
        """Return the workers that are there now, by address.

        Raises:
            FleetError: the pool is gone.
        """

    def ask(self, address: str, question: bytes) -> Future[Any]:
        """Ask a worker, beside what it does: :func:`harness.fleet.place.answer`, or its version."""

    def submit(self, order: bytes, address: str, seat: Seat, target: str) -> Future[bytes]:
        """Send an order to a worker: :func:`harness.fleet.order.carry_out`."""

    def stop(self, sweep: str, workers: Collection[str]) -> None:
        """End what is being measured for a sweep."""


def gone(pool: Pool, why: object) -> FleetError:
    """Return the error that says that a pool cannot be reached any more, and what to do."""
    return FleetError(
        f"{pool.name} is gone: {why}. What arrived is stored. "
        "Start it again and run the same command: it resumes."
    )


def said(error: BaseException) -> str:
    """Return what an error says, in one line."""
    # Dask makes plain exceptions of those that a worker raises, with their names in the text.
    text = str(error) if type(error) is Exception else f"{type(error).__name__}: {error}"
    return text.strip().partition("\n")[0][:300] or "gives no reason"
