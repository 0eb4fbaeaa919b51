"""What changed between two profiles."""

from __future__ import annotations

from harness.profiling.comparing.difference import Difference as Difference
from harness.profiling.comparing.difference import compare as compare
