"""What the workers of :mod:`tests.performance.fleet_scale` import first (`dask worker --preload`).

One machine measures one thing at a time on a device. For eight workers here to be eight machines,
each says that it is one of its own: its HARNESS_MACHINE.
"""

from __future__ import annotations

from harness.fleet import machine
from harness.records import environment


def dask_setup(worker: object) -> None:
    """Be a machine of one's own; Dask calls it when the worker starts."""
    name = environment.machine_name()
    machine.host = lambda: name
