"""Targets: where a program is built and run, and which of them this machine has.

Nothing here wakes a JAX backend: the answers come from installed packages and device files, so
that they can be asked for in any process, asv's forked readers included.
"""

from harness.targets.compile_only import DEVICES_OF_A_GPU as DEVICES_OF_A_GPU
from harness.targets.known import TARGETS as TARGETS
from harness.targets.known import find as find
from harness.targets.known import find_all as find_all
from harness.targets.real import VIRTUAL_CPU_DEVICES as VIRTUAL_CPU_DEVICES
from harness.targets.real import virtual_cpu_devices as virtual_cpu_devices
from harness.targets.surveying import Sighting as Sighting
from harness.targets.surveying import survey as survey
from harness.targets.target import Target as Target
