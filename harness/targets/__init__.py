"""Targets: where a program is built and run, and which of them this machine has.

Nothing here wakes a JAX backend: the answers come from installed packages and device files, so
that they can be asked for in any process, asv's forked readers included.
"""

from harness.targets.host import Sighting as Sighting
from harness.targets.host import survey as survey
from harness.targets.host import virtual_cpu_devices as virtual_cpu_devices
from harness.targets.registry import TARGETS as TARGETS
from harness.targets.registry import find as find
from harness.targets.registry import find_all as find_all
from harness.targets.registry import names as names
from harness.targets.target import Target as Target
