"""asv on the same workloads: benchmarks, environments, and results read from records."""
