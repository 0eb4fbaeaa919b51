"""What is measured: workloads, their axes, cases and inputs, and which code they stand for."""
