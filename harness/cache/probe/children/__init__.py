"""Programs that the probe's processes run, by file path, under any interpreter that has JAX.

Nothing here imports `harness`: the interpreter under test need not have it.
"""
