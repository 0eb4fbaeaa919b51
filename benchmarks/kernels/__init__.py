"""Fused baselines written by hand, too long to stand in a workload's class.

Each function returns the function to call and imports numba or CuPy itself, so that a workload can
be declared where neither is installed.
"""
