"""What JAX would write to a cache directory under the settings of the environment."""

from __future__ import annotations

import os

SEE_WHY = (
    "`harness cache ledger -o run.jsonl -- python PROGRAM.py` lists each program with the reason."
)

_DEFAULTS = {
    "JAX_COMPILATION_CACHE_DIR": "",
    "JAX_ENABLE_COMPILATION_CACHE": "true",
    "JAX_COMPILATION_CACHE_MAX_SIZE": "-1",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1.0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
}
"""JAX 0.10 to 0.12."""

_OFF = ("0", "n", "no", "f", "false", "off")
"""As JAX reads a variable that is true or false."""


def would_write() -> str:
    """Say which programs JAX would write, if they set nothing themselves."""
    settings = {name: os.environ.get(name, default) for name, default in _DEFAULTS.items()}
    directory, enabled, cap, seconds, size = settings.values()
    if enabled.lower() in _OFF:
        return f"JAX writes nothing with JAX_ENABLE_COMPILATION_CACHE={enabled}"
    if cap == "0":
        return "JAX writes nothing with JAX_COMPILATION_CACHE_MAX_SIZE=0"
    shown = ", ".join(
        f"{name}={value}" if name in os.environ else f"{name} is not set, so {value}"
        for name, value in list(settings.items())[3:]
    )
    text = f"JAX writes programs that took {seconds} s or more to compile and {size} bytes or more"
    text += f" to store ({shown}), unless a program sets these itself"
    return text if directory else f"{text}; JAX_COMPILATION_CACHE_DIR is not set here"
