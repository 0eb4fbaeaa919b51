"""Make a pool of what a caller has: a scheduler's address, or an executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from harness.errors import FleetError
from harness.fleet.dask_pool import DaskPool
from harness.fleet.executor_pool import ExecutorPool
from harness.fleet.pool import Pool


@contextmanager
def of_address(address: str) -> Iterator[Pool]:
    """Reach the workers of the Dask scheduler at `address`.

    Raises:
        FleetError: nobody answers there, or Dask is not installed.
    """
    pool = DaskPool(address)
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def of_executor(executor: Executor) -> Iterator[Pool]:
    """Reach the workers behind an executor; behind Dask's own, as those of its scheduler."""
    pool: Pool
    if type(executor).__module__.partition(".")[0] == "distributed":
        pool = _of_dask(executor)
    else:
        pool = ExecutorPool(executor)
    try:
        yield pool
    finally:
        pool.close()


def _of_dask(executor: Any) -> DaskPool:
    """Return the pool behind `client.get_executor()`; through its client workers can be chosen."""
    if executor._shutdown:
        raise FleetError("The executor was shut down. Make another: client.get_executor().")
    workers = executor._kwargs.get("workers") or ()
    return DaskPool(
        client=executor._client, only=[workers] if isinstance(workers, str) else workers
    )
