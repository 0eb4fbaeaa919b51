"""A night: run the benchmarks in each given environment, compare with the night before, report."""
