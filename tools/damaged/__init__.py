"""Damage every file that is read back, in every way: `python -m tools.damaged`."""
