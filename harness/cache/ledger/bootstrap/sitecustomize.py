"""Opens a ledger as soon as, and only if, this process imports JAX; then it steps aside.

Python runs this file at start-up, because `harness cache ledger -o FILE -- ...` put its folder on
PYTHONPATH. It uses the standard library alone, so that a process without JAX pays nothing, and a
program that sets XLA_FLAGS before it imports JAX is left to do so.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

HERE = os.path.dirname(os.path.abspath(__file__))
TRIGGER = "jax._src.compiler"


class _WhenJaxIsThere:
    """Finds nothing itself; it opens the ledger when JAX's compiler module has been executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != TRIGGER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def then_open(module: ModuleType) -> None:
            execute(module)
            _open_ledger()

        spec.loader.exec_module = then_open  # type: ignore[method-assign]
        return spec


def _open_ledger() -> None:
    home = os.environ.get("HARNESS_LEDGER_HOME", "")
    borrowed = bool(home) and importlib.util.find_spec("harness") is None
    if borrowed:
        sys.path.append(home)
    try:
        ledger = importlib.import_module("harness.cache.ledger")
        ledger.open_until_exit(os.environ["HARNESS_LEDGER"])
    # The program under the ledger goes on, whatever is wrong with the ledger.
    except Exception as error:
        print(f"harness: this process has no ledger: {error}", file=sys.stderr)
    finally:
        if borrowed:
            sys.path.remove(home)


def _step_aside() -> None:
    """Let the sitecustomize that would have run without this one run now."""
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":  # and not where a checker or a test imports it by its full name
    if os.environ.get("HARNESS_LEDGER"):
        sys.meta_path.insert(0, _WhenJaxIsThere())
    _step_aside()
