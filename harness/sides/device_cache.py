"""The L2 cache of the GPU, asked of the driver: JAX does not tell it."""

from __future__ import annotations

import ctypes

_DRIVER = "libcuda.so.1"
_L2_CACHE_SIZE = 38
"""CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE."""


def l2_cache_bytes(device: int = 0) -> int | None:
    """Return the size of a GPU's L2 cache, or None where there is no NVIDIA driver or device.

    Any process may ask: no context is made on the device.
    """
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return None
    size, handle = ctypes.c_int(), ctypes.c_int()
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(handle), device)
        or driver.cuDeviceGetAttribute(ctypes.byref(size), _L2_CACHE_SIZE, handle)
    )
    return None if failed or size.value <= 0 else size.value
