"""Run any Python program, unchanged, and be in every Python that it starts."""
