"""Why JAX builds: one file for each cause, which says everything about it."""
