"""Tell, before a run on a GPU without a network, what is missing and how to bring it.

Needs nothing but Python.
"""

from __future__ import annotations

import importlib
import importlib.util
import platform
import sys

CARRIED = {
    "array_api_compat": "array-api-compat",
    "msgspec": "msgspec",
    "psutil": "psutil",
    "rich": "rich",
    "click": "click",
}
"""Small packages that a machine for JAX may lack: module to distribution."""

EXPECTED = {
    "jax": "jax[cuda13]",
    "cupy": "cupy-cuda13x[ctk]",
    "numpy": "numpy",
    "scipy": "scipy",
    "pandas": "pandas",
}
"""Large ones, expected to be there."""


def missing() -> tuple[dict[str, str], dict[str, str]]:
    """Return what cannot be imported of :data:`CARRIED`, and what is not there of `EXPECTED`.

    The small ones are imported, because one may be there without what it needs itself.
    """
    small = {name: wheel for name, wheel in CARRIED.items() if not _imports(name)}
    large = {name: wheel for name, wheel in EXPECTED.items() if not importlib.util.find_spec(name)}
    return small, large


def _imports(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def advice(small: dict[str, str], large: dict[str, str]) -> str:
    """Return, in a few lines, how to bring what is missing; empty if nothing is."""
    if not small and not large:
        return ""
    lines = [f"make gpu: {sys.executable} cannot import {', '.join({**large, **small})}."]
    if large:
        wheels = " ".join(f"'{wheel}'" for wheel in large.values())
        names = ", ".join(large)
        lines.append(f"Name a Python that has {names} (PYTHON=...), or: pip install {wheels}")
    if small:
        version = ".".join(map(str, sys.version_info[:2]))
        wheels = " ".join(small.values())
        lines += [
            "Without a network, on a machine that has one, then carry the folder wheels/ over:",
            f"  pip download --dest wheels --only-binary=:all: --python-version {version} "
            f"--platform manylinux_2_28_{platform.machine()} {wheels}",
            f"  {sys.executable} -m pip install --no-index --find-links wheels --target carried "
            f"{wheels}",
            "  PYTHONPATH=carried make gpu",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(advice(*missing()) or 0)
