"""Which way a declared workload should be shipped: every way, measured from process start."""
