"""One event of XLA's, as it is recorded during a compile."""

from dataclasses import dataclass

ROOT = "backend_compile_and_load"
"""JAX's own event around a compile (jax 0.10 to 0.12)."""


@dataclass(frozen=True, slots=True)
class CompileEvent:
    """One event of one thread."""

    thread: str
    begin_ns: int
    end_ns: int
    name: str
    module: str = ""
    """The kernel that is generated, or the module that is optimised."""
    operations: int = 0
    """Of the kernel, where XLA says it."""
    is_pipeline: bool = False
    """It is a pipeline of passes over the module."""
