"""How large a cache is, and how many sets of inputs take turns, so that none comes from it."""

from __future__ import annotations

import ctypes
import math
import os
from pathlib import Path

CACHE_MULTIPLE = 4
"""A working set is beyond a cache that is this many times smaller."""

MOST_BYTES = 256 * 2**20
MOST_SETS = 16

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}

_L2_CACHE_SIZE = 38
"""CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE."""


def set_count(argument_bytes: int, cache_bytes: int | None) -> int:
    """Return how many sets of inputs there should be.

    Enough to exceed :data:`CACHE_MULTIPLE` caches, where that many can be afforded.
    """
    if not argument_bytes:
        return 1
    enough = math.ceil(CACHE_MULTIPLE * (cache_bytes or 0) / argument_bytes)
    return max(1, min(enough, MOST_SETS, MOST_BYTES // argument_bytes))


def is_resident(sets: int, argument_bytes: int, output_bytes: int, cache: int | None) -> bool:
    """Tell whether what takes turns, and one result, may stay in the cache."""
    return cache is not None and sets * argument_bytes + output_bytes < CACHE_MULTIPLE * cache


def last_level_cache() -> int | None:
    """Return the size in bytes of the first processor's largest cache, or None if unknown."""
    sizes = []
    for file in _CACHES.glob("index*/size"):  # Linux
        text = file.read_text().strip()
        if text[:-1].isdecimal() and text[-1] in _UNITS:
            sizes.append(int(text[:-1]) * _UNITS[text[-1]])
    name = "SC_LEVEL3_CACHE_SIZE"
    if not sizes and name in getattr(os, "sysconf_names", {}):
        return os.sysconf(name) or None
    return max(sizes, default=None)


def l2_cache_bytes() -> int | None:
    """Return the size of the first GPU's L2 cache, which JAX does not tell: of the driver.

    None where there is no NVIDIA driver or device. No context is made on the device.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    size, handle = ctypes.c_int(), ctypes.c_int()
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(handle), 0)
        or driver.cuDeviceGetAttribute(ctypes.byref(size), _L2_CACHE_SIZE, handle)
    )
    return None if failed or size.value <= 0 else size.value
