"""Every verb and option of asv 0.6.6 on one small project of workloads and plain benchmarks."""
