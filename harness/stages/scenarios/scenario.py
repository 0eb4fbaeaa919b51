"""What a scenario is: what a process finds when it starts, in which a case is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.stages.stage import Step

REQUEST = {"compile": 1, "request": 1}
# JAX's compile event fires on hits as well (jax 0.8 to 0.12), so a load shows both.
HIT = {**REQUEST, "hit": 1}
WRITTEN = {**REQUEST, "write": 1, "entry": 1}

_VARIABLES = ("JAX_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE", "JAX_ENABLE_COMPILATION_CACHE")


class NoArtefact(Exception):
    """There can be no artefact of a program; the text says why."""


@dataclass(frozen=True)
class Artefact:
    """What one process makes of a function, and another one loads instead of building it."""

    make: Callable[[Any], tuple[bytes, dict[str, Any]]]
    """Returns its bytes, of an ordinary :class:`harness.stages.build.Build` that is done, and what
    `load` needs besides, as JSON; raises an exception of any kind where it cannot be made."""
    load: Callable[[bytes, Mapping[str, Any]], Any]
    """Returns what is called: a jitted function, or the `jax.stages.Compiled` of a scenario that
    has no step `build`. What it imports of JAX is imported then, and is part of the time."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What a process finds. Whatever lists scenarios asks the package's registry."""

    name: str
    description: str
    """One line, for `--help` and the docs."""
    steps: tuple[Step, ...]
    """The steps of a visit: which stages there are."""
    first_calls: int = 5
    """So many processes take a case's first call at the most, where nobody asks for a number."""
    directory: Literal["none", "empty", "filled"]
    """What the directory of a measuring process, of the persistent cache or with an artefact, holds
    when it starts."""
    filled_in: str = ""
    """The scenario in which another process fills the directory."""
    artefact: Artefact | None = None
    """What another process makes for it; the persistent cache is then off."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of a measuring process, besides those that name the directory."""
    outcomes: tuple[tuple[str, dict[str, int]], ...] = ()
    """What a compile request may come to: the stage it then is, and the events that prove it."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why a stage may have no samples, which is no fault."""

    def environment(self, folder: str) -> dict[str, str]:
        """Return the environment variables that put a process into the scenario."""
        if self.directory == "none" or self.artefact:
            # With the cache on, even without a folder, JAX hashes every module inside the compile
            # stage (jax 0.8 to 0.12).
            return {"JAX_ENABLE_COMPILATION_CACHE": "0"}
        where = {"JAX_ENABLE_COMPILATION_CACHE": "1", "JAX_COMPILATION_CACHE_DIR": folder}
        return {**where, **self.settings}


WRITE_ALL = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""Settings under which JAX writes every program, whatever it cost."""


def forgotten(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what it says of the persistent cache."""
    return {name: text for name, text in inherited.items() if not name.startswith(_VARIABLES)}
