"""Scenarios: what a process finds when it starts to measure a case."""
