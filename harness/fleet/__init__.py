"""Sweeps on the workers of a Dask scheduler: a task per process, records to the client."""
