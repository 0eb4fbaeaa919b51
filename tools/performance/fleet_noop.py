"""What the workers of :mod:`tools.performance.fleet_scale` import first (`dask worker --preload`).

One machine measures one thing at a time on a device. For eight workers here to be eight machines,
each says that it is one of its own: its HARNESS_MACHINE. And instead of measuring, each makes a
record of the usual size, which then goes the way of all records.
"""

from harness.engine.job import Job, unmeasured
from harness.engine.process import Listener
from harness.fleet import order, place
from harness.records import environment
from harness.records.schema import StageSamples

STAGES = {stage: StageSamples([1.5e6 + n for n in range(20)]) for stage in ("trace", "lower")}
CODE = {f"benchmarks.module_{number}": f"{number:016x}" for number in range(40)}


def execute(job: Job, listener: Listener) -> None:
    """Make a record of each case without measuring."""
    for ref in job.cases:
        record = unmeasured(job, ref, "ok", "", stages=STAGES, code=CODE)
        listener.keep(record, ref)


def dask_setup(worker: object) -> None:
    """Be a machine of one's own; Dask calls it when the worker starts."""
    name = environment.machine_name()
    place.host = order.host = lambda: name
    order.execute = execute
