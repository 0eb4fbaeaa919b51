"""Make a pool of what a caller has, a scheduler's address or an executor, and measure on it."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

from harness.engine.state import Outcome
from harness.errors import FleetError
from harness.fleet.dask_pool import DaskPool
from harness.fleet.executor_pool import ExecutorPool
from harness.fleet.pool import Pool
from harness.fleet.sweep import sweep_on


def sweep(where: str | Executor, *arguments: Any, **named: Any) -> Outcome:
    """Do what :func:`harness.fleet.sweep.sweep_on` does, on the workers that `where` stands for.

    Args:
        where: the address of a Dask scheduler, or an executor.
        arguments: for `sweep_on`, after the pool.
        named: the same, by name.
    """
    pool = of(where)
    try:
        return sweep_on(pool, *arguments, **named)
    finally:
        pool.close()


def of(where: str | Executor) -> Pool:
    """Return the pool behind an address or an executor; Dask's own executor is its scheduler's.

    Raises:
        FleetError: nobody answers there, or Dask is not installed.
    """
    if isinstance(where, str):
        return DaskPool(where)
    if type(where).__module__.partition(".")[0] == "distributed":
        return _of_dask(where)
    return ExecutorPool(where)


def _of_dask(executor: Any) -> DaskPool:
    """Return the pool behind `client.get_executor()`; through its client workers can be chosen."""
    if executor._shutdown:
        raise FleetError("The executor was shut down. Make another: client.get_executor().")
    workers = executor._kwargs.get("workers") or ()
    return DaskPool(
        client=executor._client, only=[workers] if isinstance(workers, str) else workers
    )
