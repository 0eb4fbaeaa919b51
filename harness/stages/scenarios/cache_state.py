"""The persistent cache of the running process: its directory changed, switched off, looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

_ALL_IS_WRITTEN = {
    "jax_enable_compilation_cache": True,
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def entries(folder: Path) -> dict[str, int]:
    """Return the size in bytes of each entry in a cache directory, by file name."""
    return {file.name: file.stat().st_size for file in folder.glob("*-cache")}


def use(folder: Path) -> None:
    """Make the running process use another cache directory from now on.

    `jax.config.update` alone is ignored once JAX has looked (jax 0.8 to 0.12).
    """
    jax.config.update("jax_compilation_cache_dir", str(folder))
    compilation_cache.reset_cache()


@contextmanager
def switched_off() -> Iterator[None]:
    """Keep the persistent cache out of what is measured inside: the reference program."""
    was: Any = jax.config.values["jax_enable_compilation_cache"]
    if not was:
        yield
        return
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", was)
        compilation_cache.reset_cache()


@contextmanager
def switched_on() -> Iterator[None]:
    """Let JAX use the persistent cache for what is done inside, whatever it costs to compile."""
    names = (*_ALL_IS_WRITTEN, "jax_compilation_cache_dir")
    before = {name: jax.config.values[name] for name in names}
    for name, value in _ALL_IS_WRITTEN.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
