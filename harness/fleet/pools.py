"""Sweep over the workers of a Dask scheduler, or those behind any other executor.

Either way an order is submitted to a `concurrent.futures.Executor`, and its future waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future
from typing import Any

from harness.engine.state import Outcome
from harness.errors import FleetError
from harness.fleet import machine, remote
from harness.fleet.pool import Pool, Seat, gone
from harness.fleet.sweep import sweep_on

CONNECT_S = 8.0
"""How long a scheduler may take to answer at first."""

IDENTITY_S = 30.0
"""How long a scheduler that is there may take to say which workers it has."""

ANSWER_S = 120.0
"""How long workers may take to say what they are: they import the workloads for it."""

STOP_S = 5.0

START_S = 300.0
"""How long an executor may take to answer: it may have to start its workers."""

ASKED = 8
"""Calls that ask who answers, where an executor does not say how many workers it has."""

CALL = "__import__('harness.fleet.remote', fromlist=['remote']).carry_out(order)"
"""What a task of Dask's evaluates. The scheduler reads tasks as well, and need not have the
harness: so they must hold no function of ours, and code objects are tied to a version of Python."""


class DaskPool:
    """The workers of a Dask scheduler; of these `only` those, if any are named."""

    chooses = True

    def __init__(self, client: Any, name: str = "", only: Collection[str] = ()) -> None:
        self.client = client
        self.name = name or str(client.scheduler.address)
        self.only = set(only)

    def workers(self) -> dict[str, Seat]:
        """Ask the scheduler."""
        try:
            if self.client.status != "running":
                raise ConnectionError("the connection to it was lost")
            known = self.client.sync(_identity, self.client)["workers"]
        except (OSError, TimeoutError, RuntimeError) as error:
            raise gone(self, str(error) or "it does not answer") from error
        return {
            address: Seat(str(info.get("id", "")), info.get("resources") or {})
            for address, info in known.items()
            if not self.only or self.only & {address, info.get("name"), info.get("host")}
        }

    def everywhere(
        self, workers: Collection[str], function: Callable[..., Any], *arguments: Any
    ) -> dict[str, Any]:
        """Run it in a thread of each worker, beside its event loop."""
        found: dict[str, Any] = self.client.sync(
            _everywhere, self.client, workers, function, arguments
        )
        return found

    def submit(self, order: bytes, address: str, target: str) -> Future[bytes]:
        """Submit it to this worker alone, which takes it as soon as its resource is free."""
        executor = self.client.get_executor(workers=[address], resources={target: 1}, pure=False)
        found: Future[bytes] = executor.submit(eval, CALL, {"order": order})
        return found

    def stop(self, sweep: str, workers: Collection[str]) -> None:
        """Tell them, if they can be reached: the scheduler may be what ended the sweep."""
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                asked = (workers, remote.stop, (sweep,))
                self.client.sync(_everywhere, self.client, *asked, callback_timeout=STOP_S)


async def _identity(client: Any) -> Any:
    return await asyncio.wait_for(client.scheduler.identity(n_workers=-1), IDENTITY_S)


async def _everywhere(
    client: Any,
    workers: Collection[str],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> dict[str, Any]:
    async def one(worker: str) -> Any:
        run = client.run(
            *(asyncio.to_thread, function, *arguments),
            workers=[worker],
            on_error="return",
            asynchronous=True,
        )
        try:
            return (await asyncio.wait_for(run, ANSWER_S))[worker]
        except TimeoutError:
            return TimeoutError(f"nothing within {ANSWER_S:g} s")
        except Exception as error:  # it has gone meanwhile
            return error

    return dict(zip(workers, await asyncio.gather(*map(one, workers)), strict=True))


class ExecutorPool:
    """The machines behind an executor.

    It does not say where a call will run: several calls find out who answers.
    """

    chooses = False

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.name = type(executor).__name__
        self.calls = getattr(executor, "_max_workers", None) or ASKED
        self.hosts = self.everywhere((), len, ())
        if len(self.hosts) == 1:
            self.calls = 1

    def workers(self) -> dict[str, Seat]:
        """Return the machines that answered at first."""
        return dict.fromkeys(self.hosts, Seat("", None))

    def everywhere(
        self, workers: Collection[str], function: Callable[..., Any], *arguments: Any
    ) -> dict[str, Any]:
        """Run it on whoever answers, and keep one answer of each machine."""
        try:
            futures = [
                self.executor.submit(_on_host, function, *arguments) for _ in range(self.calls)
            ]
            return dict(future.result(START_S) for future in futures)
        except Exception as error:  # whatever an executor of somebody's raises
            raise FleetError(
                f"The executor {self.name} did not answer: {type(error).__name__}: {error}. "
                "Expected one that runs a function of the module harness.fleet on its workers."
            ) from error

    def submit(self, order: bytes, address: str, target: str) -> Future[bytes]:
        """Submit it to whoever takes it."""
        return self.executor.submit(remote.carry_out, order)

    def stop(self, sweep: str, workers: Collection[str]) -> None:
        """End it in this process; the workers are busy, and hear of nothing."""
        remote.stop(sweep)


def _on_host(function: Callable[..., Any], *arguments: Any) -> tuple[str, Any]:
    return machine.host(), function(*arguments)


def connect(address: str) -> Any:
    """Return a client of the Dask scheduler at an address.

    Raises:
        FleetError: nobody answers there, or Dask is not installed.
    """
    try:
        from distributed import Client, comm  # of the extra `fleet`
    except ImportError as error:
        raise FleetError(
            f"Sweeps over a fleet need Dask: {error}. Install the extra 'fleet': "
            "pip install 'jax-harness[fleet]'."
        ) from error
    for name in ("distributed", "distributed.client", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is said by us
    try:
        # A client that is refused its address waits for a connection when it is thrown away.
        scheme, location = comm.addressing.parse_address(address)
        comm.registry.get_backend(scheme).get_address_host_port(location)
        return Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        text = str(error) or type(error).__name__
        raise FleetError(
            f"No Dask scheduler answers at {address}: {text}. Expected the address that "
            "`dask scheduler` prints, such as tcp://host:8786. Start one, or correct --on."
        ) from error


def pool_of(executor: Executor) -> Pool:
    """Return the pool behind an executor; Dask's own stands for the workers that it may use.

    Raises:
        FleetError: it was shut down, or does not answer.
    """
    if type(executor).__module__.partition(".")[0] != "distributed":
        return ExecutorPool(executor)
    dask: Any = executor
    if dask._shutdown:
        raise FleetError("The executor was shut down. Make another: client.get_executor().")
    workers = dask._kwargs.get("workers") or ()
    return DaskPool(dask._client, only=[workers] if isinstance(workers, str) else workers)


def sweep(where: str | Executor, *arguments: Any, **named: Any) -> Outcome:
    """Do what :func:`harness.fleet.sweep.sweep_on` does, on the workers that `where` stands for.

    Args:
        where: the address of a Dask scheduler, or an executor.
        arguments: for `sweep_on`, after the pool.
        named: the same, by name.
    """
    if not isinstance(where, str):
        return sweep_on(pool_of(where), *arguments, **named)
    client = connect(where)
    try:
        return sweep_on(DaskPool(client, where), *arguments, **named)
    finally:
        with contextlib.suppress(Exception):  # its scheduler may be gone
            client.close(timeout=5)
