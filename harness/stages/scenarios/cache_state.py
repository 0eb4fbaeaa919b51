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
    if not jax.config.values["jax_enable_compilation_cache"]:
        yield
        return
    with _configured({"jax_enable_compilation_cache": False}):
        compilation_cache.reset_cache()
        yield


@contextmanager
def switched_on() -> Iterator[None]:
    """Let JAX use the persistent cache for what is done inside, whatever it costs to compile."""
    # The directory too: it is for what is done inside to choose.
    folder = "jax_compilation_cache_dir"
    with _configured({**_ALL_IS_WRITTEN, folder: jax.config.values[folder]}):
        yield


@contextmanager
def _configured(settings: dict[str, Any]) -> Iterator[None]:
    before = {name: jax.config.values[name] for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
