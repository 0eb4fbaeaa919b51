"""What the tests of sweeps share: the suites, and a sweep into a folder of the test's own."""

from pathlib import Path

from harness.measure.context import Options, local_context
from harness.measure.sweep import sweep as measure
from harness.stages import sampling
from harness.workload import location

SUITES = Path(__file__).parent / "suites"


def workload(module: str, name: str):
    """Return a class of the suite `troubled`."""
    file = SUITES / "troubled" / f"{module}.py"
    return getattr(location.import_file(f"troubled.{module}", file), name)


def sweep(workloads, results: Path, effort="1x1", **options):
    """Measure into `results` and return the outcome."""
    level = effort if isinstance(effort, sampling.Effort) else sampling.effort(effort)
    context = local_context(results, SUITES, "tested")
    on_progress = options.pop("on_progress", lambda message: None)
    return measure(workloads, context, Options(level, **options), on_progress)


def by_axis(outcome, axis):
    """Return the records of an outcome by the value of one axis."""
    return {r.axes[axis]: r for r in outcome.records if axis in r.axes}
