"""What is noted of one compile request while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.watch.ledger import keys


def text_of(error: BaseException) -> str:
    """Return an error as one line, as an event keeps it."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:500]


@dataclass
class Request:
    """What is known so far of the compile request that a thread is in."""

    module: str = ""
    locations_in_key: bool = False
    own_s: float = 0.0
    backend: Any = None
    used: bool | None = None
    """Whether JAX takes the cache for usable here; None where it did not ask."""
    enabled: bool = True
    key: str = ""
    key_s: float = 0.0
    key_error: str = ""
    captured: dict[str, keys.Captured] = field(default_factory=dict)
    capturing: keys.Captured | None = None
    reading: bool = False
    loaded: bool = False
    load_s: float | None = None
    stored_compile_s: int | None = None
    jax_saved_s: float | None = None
    read_error: str = ""
    bytes_in: int = 0
    compile_s: float | None = None
    compile_error: str = ""
    asked_to_write: bool = False
    host_callbacks: bool = False
    jax_compile_s: float = 0.0
    putting: bool = False
    put: bool = False
    found_room: bool = False
    """Whether JAX found no entry in the place, and set out to write one."""
    in_place: bool = False
    """Whether an entry was in the place after the put."""
    entry_bytes: int | None = None
    write_s: float | None = None
    write_error: str = ""
    lock_wait_s: float = 0.0
