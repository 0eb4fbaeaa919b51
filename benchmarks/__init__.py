"""What is measured: one module per family of workloads, one class per workload."""

from harness.asv import suite

# Gives each workload defined in this package what asv looks for: setup_cache, params and the
# track_* readers.
suite.install()
