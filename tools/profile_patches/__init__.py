"""Patches that `harness profile patch` writes for small and public programs."""
