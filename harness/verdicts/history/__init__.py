"""Where a series of commits or nights changed: points in order, steps among them, as frames."""

from __future__ import annotations

from harness.verdicts.history.change_points import history as history
from harness.verdicts.history.points import series as series

__all__ = ["history", "series"]
