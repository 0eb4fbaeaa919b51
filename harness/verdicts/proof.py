"""What proves that nothing which determines a stage's CPU time differs, so that no clock is asked.

It excuses CPU time only: whether a stage waits, for a disk or a lock, is always judged.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from harness.frame.differences import sections
from harness.stages.registry import stage_of
from harness.verdicts import counts

if TYPE_CHECKING:
    from harness.frame.pairs import Row

_CACHE_FLAGS = ("JAX_ENABLE_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE", "JAX_COMPILATION_CACHE")
"""Flags that scenarios set; they change nothing in a program."""

_BUILDS = ("build", "compile")
_RUNS = ("run", "compute")
_MODULE = ("jaxpr_equations", "stablehlo_operations", "stablehlo_bytes")


class Equal(Enum):
    """What is equal on both sides."""

    NOTHING = ""
    PROGRAM = "program"
    """The program, its inputs and what runs it."""
    MODULE = "module"
    """What XLA was given, as far as it was counted, and the program that it made of it."""
    CODE = "code"
    """The loaded code, versions and flags, Python's calls, and the program."""


def share_runtime(a: Row, b: Row) -> bool:
    """Tell whether nothing that builds and runs programs is known to differ between two rows."""
    shared = ("jax", "jaxlib", "python", "machine", "target", "scenario")
    before, after = a["environment"], b["environment"]
    return all(a[name] == b[name] for name in shared) and (
        before == after or _compiling(before) == _compiling(after)
    )


@lru_cache(maxsize=1024)
def _compiling(text: str | None) -> tuple[Any, ...]:
    """Return the parts of an environment that decide how programs are compiled."""
    about = sections(text)
    flags = about.get("flags", {})
    kept = {name: flags[name] for name in flags if not name.startswith(_CACHE_FLAGS)}
    return kept, about.get("plugins"), about[""].get("x64")


def _same_module(a: Row, b: Row) -> bool:
    """Tell whether XLA was given modules of equal size in every count; unknown ones are not."""
    return all(a.get(name) is not None and a[name] == b.get(name) for name in _MODULE)


def other_inputs(a: Row, b: Row) -> bool:
    """Tell whether the values of the inputs are known to differ."""
    one, other = (row.get("inputs") or "" for row in (a, b))
    return bool(one and other and one != other)


def equal(a: Row, b: Row) -> Equal:
    """Return what proves that two rows take the same CPU time.

    Of the stages that build: the same code was loaded, by the same versions and flags, made as many
    Python calls in trace and lower, and came to the same program; of compile it is enough that XLA
    was given a module of the same counts and made the same program. Of those that run: that program
    got the same input values, and does not call back to the host. What is not recorded proves
    nothing.
    """
    step = stage_of(b["stage"]).step
    same_program = a["fingerprint"] and a["fingerprint"] == b["fingerprint"]
    if step not in (*_BUILDS, *_RUNS) or not same_program or not share_runtime(a, b):
        return Equal.NOTHING
    same_code = a.get("code") and a["code"] == b.get("code") and counts.same(a, b)
    if step in _BUILDS and same_code:
        return Equal.CODE
    if step in _BUILDS:
        return Equal.MODULE if step == "compile" and _same_module(a, b) else Equal.NOTHING
    same_inputs = a.get("inputs") and a["inputs"] == b.get("inputs")
    return (Equal.CODE if same_code else Equal.PROGRAM) if same_inputs else Equal.NOTHING
