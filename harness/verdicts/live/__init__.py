"""Two arms measured now, process by process, in random order: `harness compare A B --live`.

Processes that take turns share the machine's drift, so raw seconds can be compared.
"""

from __future__ import annotations

from harness.verdicts.live.arm import LiveArm as LiveArm
from harness.verdicts.live.arm import differing_columns as differing_columns
from harness.verdicts.live.arm import parse as parse
from harness.verdicts.live.rounds import LiveOptions as LiveOptions
from harness.verdicts.live.rounds import run_live as run_live
