"""Scenarios: the states of the persistent cache in which a case is measured, one file each."""
