# The names of the package, each once: `harness/__init__.py` resolves them on first use.

from harness.frame.against import against_baseline as against_baseline
from harness.frame.load import load as load
from harness.frame.notebook import sweep as sweep
from harness.frame.program_facts import compile_times as compile_times
from harness.frame.program_facts import program_facts as program_facts
from harness.frame.programs import recompile_map as recompile_map
from harness.frame.startup import cache_effectiveness as cache_effectiveness
from harness.frame.startup import phases as phases
from harness.output.report.profile.budget import BudgetExceeded as BudgetExceeded
from harness.output.report.profile.budget import budget as budget
from harness.output.report.profile.face import load_profile as load_profile
from harness.output.report.profile.face import profile as profile
from harness.verdicts.compare import compare as compare
from harness.verdicts.history import history as history
from harness.workload.workload import Spec as Spec
from harness.workload.workload import Workload as Workload
from harness.workload.workload import WorkloadError as WorkloadError
from harness.workload.workload import arguments as arguments
from harness.workload.workload import spec as spec

__version__: str
__all__: list[str]
