"""Why JAX builds, and what can be done about it: a row or a file for each cause."""
