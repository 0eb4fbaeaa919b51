"""Reach a Dask scheduler, and ask its workers, so that nothing of it hangs or surprises."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from typing import Any

from harness.errors import FleetError

CONNECT_S = 8.0
"""How long a scheduler may take to answer at first."""

IDENTITY_S = 30.0
"""How long a scheduler that is there may take to say which workers it has."""


def connect(address: str) -> Any:
    """Return a client of the scheduler at an address.

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
        said = str(error) or type(error).__name__
        raise FleetError(
            f"No Dask scheduler answers at {address}: {said}. Expected the address that "
            "`dask scheduler` prints, such as tcp://host:8786. Start one, or correct --on."
        ) from error


def close(client: Any) -> None:
    """Close a client, whether its scheduler is there or not."""
    with contextlib.suppress(Exception):
        client.close(timeout=5)


def workers_of(client: Any) -> dict[str, dict[str, Any]]:
    """Return what the scheduler knows of its workers now, by their address.

    Raises:
        ConnectionError: it is gone.
    """
    if client.status != "running":
        raise ConnectionError("the connection to it was lost")
    try:
        identity = client.sync(_identity, client)
    except (OSError, TimeoutError, RuntimeError) as error:
        raise ConnectionError(str(error) or "it does not answer") from error
    found: dict[str, dict[str, Any]] = identity["workers"]
    return found


def each(
    client: Any,
    function: Callable[..., Any],
    *arguments: Any,
    workers: Collection[str],
    timeout_s: float = 30.0,
) -> dict[str, Any]:
    """Run a function on workers, beside what they do; return what it returned or raised on each."""
    found: dict[str, Any] = client.sync(
        _each, client, function, arguments, list(workers), timeout_s
    )
    return found


def why(error: Any) -> str:
    """Say why a worker could not do something."""
    if isinstance(error, TimeoutError):
        return f"does not answer: {error}"
    # Dask makes plain exceptions of those that a worker raises, with their names in the text.
    plain = type(error) is Exception or not isinstance(error, BaseException)
    text = str(error) if plain else f"{type(error).__name__}: {error}"
    return text.strip().splitlines()[0][:300] if text.strip() else "gives no reason"


async def _identity(client: Any) -> Any:
    return await asyncio.wait_for(client.scheduler.identity(n_workers=-1), IDENTITY_S)


async def _each(
    client: Any,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    workers: list[str],
    timeout_s: float,
) -> dict[str, Any]:
    async def one(worker: str) -> Any:
        run = client.run(
            function, *arguments, workers=[worker], on_error="return", asynchronous=True
        )
        try:
            return (await asyncio.wait_for(run, timeout_s))[worker]
        except TimeoutError:
            return TimeoutError(f"nothing within {timeout_s:g} s")
        except Exception as error:  # it has gone meanwhile
            return error

    return dict(zip(workers, await asyncio.gather(*map(one, workers)), strict=True))
