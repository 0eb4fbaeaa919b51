"""The workers of a Dask scheduler, or those behind any other executor.

Either way an order is submitted to a `concurrent.futures.Executor`, and its future waited for. What
is submitted is text that `eval` runs: the scheduler reads tasks as well, and need not have the
harness, and code objects are tied to a version of Python.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from typing import Any

from harness import __version__
from harness.engine.outcome import Outcome
from harness.errors import FleetError
from harness.fleet import order as orders
from harness.fleet.sweep import sweep_on
from harness.fleet.workers import Pool, Seat, gone, said
from harness.records.installation import command_for

CONNECT_S = 8.0
"""How long a scheduler may take to answer at first."""

IDENTITY_S = 30.0
"""How long a scheduler that is there may take to say which workers it has."""

STOP_S = 5.0

SEATS = 8
"""Workers that an executor is taken to have, where it does not say how many."""

_MODULE = "__import__('harness.fleet.{0}', fromlist=['{0}'])"
ANSWER = (
    f"{_MODULE.format('place')}.answer(question) "
    "if __import__('harness').__version__ == version else __import__('harness').__version__"
)
CARRY_OUT = f"{_MODULE.format('order')}.carry_out(order)"
STOP = f"{_MODULE.format('order')}.stop(sweep)"


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
            known = self.client.sync(self._identity)["workers"]
        except (OSError, TimeoutError, RuntimeError) as error:
            raise gone(self, str(error) or "it does not answer") from error
        return {
            # Dask's `id` is the name, which the next process keeps; a folder is one process's own.
            address: Seat(info.get("local_directory", ""), info.get("resources") or None)
            for address, info in known.items()
            if not self.only or self.only & {address, info.get("name"), info.get("host")}
        }

    async def _identity(self) -> Any:
        return await asyncio.wait_for(self.client.scheduler.identity(n_workers=-1), IDENTITY_S)

    def ask(self, address: str, question: bytes) -> Future[Any]:
        """Ask in a thread of the worker, beside its event loop."""
        return self._evaluate(address, ANSWER, question=question, version=__version__)

    def _evaluate(self, address: str, text: str, **names: Any) -> Future[Any]:
        async def evaluated() -> Any:
            # The worker may have gone meanwhile: that is an error of the call, or of what it asks.
            run = (asyncio.to_thread, eval, text, names)
            return (await self.client.run(*run, workers=[address], asynchronous=True))[address]

        return asyncio.run_coroutine_threadsafe(evaluated(), self.client.loop.asyncio_loop)

    def submit(self, order: bytes, address: str, seat: Seat, target: str) -> Future[bytes]:
        """Submit it to this worker alone, which takes it as soon as its resource is free."""
        wanted = {} if seat.resources is None else {"resources": {target: 1}}
        executor = self.client.get_executor(workers=[address], pure=False, **wanted)
        found: Future[bytes] = executor.submit(eval, CARRY_OUT, {"order": order})
        return found

    def stop(self, sweep: str, workers: Collection[str]) -> None:
        """Tell them, if they can be reached: the scheduler may be what ended the sweep."""
        if self.client.status == "running":
            for told in [self._evaluate(address, STOP, sweep=sweep) for address in workers]:
                with contextlib.suppress(Exception):
                    told.result(STOP_S)


class ExecutorPool:
    """The workers behind an executor, which does not say where a call will run."""

    chooses = False

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self.name = type(executor).__name__
        count = getattr(executor, "_max_workers", None) or SEATS
        self._seats = {f"{self.name} {number + 1}": Seat("", None) for number in range(count)}

    def workers(self) -> dict[str, Seat]:
        """Return as many as it can have; those of one machine answer alike."""
        return dict(self._seats)

    def ask(self, address: str, question: bytes) -> Future[Any]:
        """Ask whoever takes it."""
        return self._submit(ANSWER, question=question, version=__version__)

    def submit(self, order: bytes, address: str, seat: Seat, target: str) -> Future[bytes]:
        """Submit it to whoever takes it."""
        return self._submit(CARRY_OUT, order=order)

    def _submit(self, text: str, **names: Any) -> Future[Any]:
        try:
            found: Future[Any] = self.executor.submit(eval, text, names)
        except Exception as error:  # whatever an executor of somebody's raises
            raise gone(self, said(error)) from error
        return found

    def stop(self, sweep: str, workers: Collection[str]) -> None:
        """End it in this process; the workers are busy, and hear of nothing."""
        orders.stop(sweep)


def connect(address: Any) -> Any:
    """Return a client of the Dask scheduler at an address, or of a Dask cluster."""
    try:
        from distributed import Client, comm  # of the extra `fleet`
    except ImportError as error:
        raise FleetError(
            f"Sweeps over a fleet need Dask: {error}. Install it: {command_for('fleet')}."
        ) from error
    for name in ("distributed", "distributed.client", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is said by us
    try:
        if isinstance(address, str):
            # A client that is refused its address waits for a connection when it is thrown away.
            scheme, location = comm.addressing.parse_address(address)
            comm.registry.get_backend(scheme).get_address_host_port(location)
        return Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        text = str(error) or type(error).__name__
        raise FleetError(
            f"No Dask scheduler answers at {address}: {text}. Expected the address that "
            "`dask scheduler` prints, such as tcp://host:8786, or a cluster that runs. Start one, "
            "or correct --on."
        ) from error


@contextlib.contextmanager
def pool_of(where: Any) -> Iterator[Pool]:
    """Yield the pool behind an address, a Dask client or cluster, or any executor."""
    dask = sys.modules.get("distributed")
    with contextlib.ExitStack() as ended:
        if isinstance(where, str) or (dask and isinstance(where, dask.deploy.Cluster)):
            client = connect(where)
            ended.callback(_close, client)
            yield DaskPool(client, where if isinstance(where, str) else "")
        elif dask and isinstance(where, dask.Client):
            if where.status != "running":
                raise FleetError("The client was closed. Make another: Client(...).")
            yield DaskPool(where)
        elif dask and isinstance(where, dask.cfexecutor.ClientExecutor):
            if where._shutdown:
                raise FleetError("The executor was shut down. Make another: client.get_executor().")
            only = where._kwargs.get("workers") or ()
            yield DaskPool(where._client, only=[only] if isinstance(only, str) else only)
        elif callable(getattr(where, "submit", None)) and not isinstance(where, type):
            yield ExecutorPool(where)
        else:
            raise FleetError(
                f"executor= is {where!r:.80}. Expected a Dask Client or cluster, such as "
                "LocalCluster(), client.get_executor(), an executor of concurrent.futures, or the "
                "address of a Dask scheduler, such as 'tcp://host:8786'."
            )


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):  # its scheduler may be gone
        client.close(timeout=5)


def sweep(where: Any, *arguments: Any, **named: Any) -> Outcome:
    """Do what :func:`harness.fleet.sweep.sweep_on` does, on the workers that `where` stands for."""
    with pool_of(where) as pool:
        return sweep_on(pool, *arguments, **named)
