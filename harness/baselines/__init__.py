"""NumPy and CuPy baselines: who computes a case as well, whether it is right, and how fast."""
