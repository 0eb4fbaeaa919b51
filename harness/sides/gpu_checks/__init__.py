"""What can only be verified on a GPU: each check in a process of its own, none needed by another.

`python -m harness.sides.gpu_checks` runs them all, and writes a line of JSON for each.
"""
