"""A healthy file of every format that is read back, as the program writes it."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
