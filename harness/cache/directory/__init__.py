"""A cache directory, read without JAX and without the programs that filled it."""
