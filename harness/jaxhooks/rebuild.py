"""Rebuild a program's cache entries in a folder of their own: JAX neither reads nor writes others.

The setting of the directory stays as it is, since jax 0.10.2 hashes it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from harness.jaxhooks import jax_names

VARIABLE = "HARNESS_REBUILD"

LONG_S = 1e6
"""Longer than any threshold of what is written."""


def order(directory: Path, into: Path, most: int) -> str:
    """The value of the variable: at most so many entries of a directory, and into which folder."""
    return json.dumps([str(directory), str(into), most])


def follow(text: str) -> None:
    """In the program's process, once JAX is imported: give it a cache that finds nothing.

    Of what it writes only that is stored of which the directory has an entry; the process ends with
    0 where there are enough.
    """
    where, into, most = json.loads(text)
    cache = jax_names.file_cache().LRUCache

    class Rebuilt(cache):  # type: ignore[misc, valid-type]
        def get(self, key: str) -> None:
            return None

        def put(self, key: str, val: bytes) -> None:
            if Path(where, f"{key}-cache").exists():
                super().put(key, val)
            if len(list(Path(into).glob("*-cache"))) >= most:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)

    opens, writes = jax_names.REBUILDS["open"], jax_names.REBUILDS["write"]
    opened = jax_names.module(opens.module)
    setattr(opened, opens.attribute, lambda path: (Rebuilt(into, max_size=-1), path))
    compiler = jax_names.module(writes.module)
    write = getattr(compiler, writes.attribute)

    def write_all(cache_key: str, compile_time_secs: float, *rest: Any, **more: Any) -> Any:
        return write(cache_key, max(compile_time_secs, LONG_S), *rest, **more)

    setattr(compiler, writes.attribute, write_all)
