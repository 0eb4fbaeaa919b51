"""Programs for whoever works on the harness: they take figures, damage, kill, and draw pictures.

Each is run from a checkout as `python -m tools.NAME`; none of them is in the wheel or a test.
"""
