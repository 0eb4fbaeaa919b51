"""Two arms measured now, process by process, in random order: `harness compare A B --live`.

Processes that take turns share the machine's drift, so raw seconds can be compared.
"""
