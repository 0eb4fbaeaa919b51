"""Where a series of commits or nights changed: points in order, steps among them, as frames."""

from __future__ import annotations

from harness.analysis.history.change_points import history as history
from harness.analysis.history.points import series as series

__all__ = ["history", "series"]
