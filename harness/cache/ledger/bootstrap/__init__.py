"""A folder for PYTHONPATH: its `sitecustomize` opens a ledger in every Python that imports JAX."""
