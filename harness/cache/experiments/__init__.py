"""Experiments on a declared workload: how to ship it, share its cache, and what recompiles."""
