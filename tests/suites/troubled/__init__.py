"""Workloads that the tests measure: small ones, and ones that misbehave in every known way."""
