"""Whose code a file is."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.watch.events import Origin

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = tuple(
    os.path.join(path, "")
    for path in {sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")}
)
_SITES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


@functools.cache
def origin_of(file: str) -> Origin | None:
    """Tell whose code a file is; None for the profile's own, Python's, and generated code.

    JAX is where this process imported it from, which may be a checkout or behind a link.
    """
    if file.startswith("<frozen ") or file.startswith(_HERE):
        return None
    if file.startswith(_of_jax()):
        return "jax"
    if file.startswith(_LIBRARIES) or any(site in file for site in _SITES):
        return "library"
    return "program"


@functools.cache
def _of_jax() -> tuple[str, ...]:
    """Return the folders of JAX's packages, as Python names them and without links."""
    packages = (sys.modules.get(name) for name in ("jax", "jaxlib", "jax_plugins"))
    places = {str(place) for package in packages for place in getattr(package, "__path__", ())}
    places |= {os.path.realpath(place) for place in places}
    return tuple(os.path.join(place, "") for place in places)
