"""What changed between two profiles."""

from __future__ import annotations

from harness.profiles.comparing.difference import Difference as Difference
from harness.profiles.comparing.difference import compare as compare
