"""Why a function was built again: what differs from what JAX had kept of it."""
