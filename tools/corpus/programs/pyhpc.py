"""pyhpc-benchmarks: the function that each one's `run` calls, on arrays made by its package."""

import functools
import importlib
from typing import Any

from tools.corpus.programs.program import Program, checkout

SIZES = {"S": 2**12, "M": 2**16}

FUNCTIONS = {
    "equation_of_state": ("eos_jax", "gsw_dHdT"),
    "isoneutral_mixing": ("isoneutral_jax", "isoneutral_diffusion_pre"),
    "turbulent_kinetic_energy": ("tke_jax", "integrate_tke"),
}

checkout("pyhpc-benchmarks", ".")


def arguments(package: str, module: str, size: str) -> tuple[Any, ...]:
    """Return what the package hands to its function."""
    made = importlib.import_module(package).generate_inputs(SIZES[size])
    return tuple(importlib.import_module(f"{package}.{module}").prepare_inputs(*made, device="cpu"))


def program(name: str, module: str, function: str) -> Program:
    """Return one of the package's benchmarks."""
    package = f"benchmarks.{name}"
    found = getattr(importlib.import_module(f"{package}.{module}"), function)
    return Program(found, functools.partial(arguments, package, module), (*SIZES,), x64=True)


PROGRAMS = {name: program(name, *where) for name, where in FUNCTIONS.items()}
