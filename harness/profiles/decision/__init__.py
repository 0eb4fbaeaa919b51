"""Which cause a build has: what it is compared with, and what JAX could have set it off by."""
