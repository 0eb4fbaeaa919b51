"""Scenarios: the states of the persistent cache in which a case is measured, and their proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.targets import Target

SCENARIOS = {
    "off": "no persistent cache: what every other number of the harness is taken in",
    "cold": "a fresh process and an empty directory; everything is written, whatever it cost",
    "warm": "a fresh process and a directory that another process has filled",
    "default": "as warm, with JAX's own thresholds: only what compiled for 1 s or more is written",
}

STAGES = {
    "cold": ("trace", "lower", "compile", "first_call", "start"),
    "warm": ("trace", "lower", "load", "first_call", "start"),
    "default": ("trace", "lower", "compile", "load", "first_call", "start"),
}
"""The stages of a case in each scenario; `off` has those of `STAGES`."""

MISSING_BY_DEFAULT = {
    "load": "nothing to load: it compiled faster than JAX's threshold of 1 s and was not written",
    "compile": "nothing to compile: every request was answered by the cache",
}
"""Why a stage of the scenario `default` has no samples."""

_VARIABLES = ("JAX_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE", "JAX_ENABLE_COMPILATION_CACHE")
"""What the caller says of the persistent cache does not reach a process that measures."""

_REQUEST = {"compile": 1, "request": 1}
# JAX's compile event fires on hits as well (jax 0.8 to 0.12), so a load shows both.
_HIT = {**_REQUEST, "hit": 1}
_WRITTEN = {**_REQUEST, "write": 1, "entry": 1}
_TRACED = {"trace": 1, "lower": 1}


def find(name: str) -> str:
    """Return `name`, or raise with the scenarios there are."""
    if name not in SCENARIOS:
        raise UsageError(f"No scenario is called {name!r}; known are {', '.join(SCENARIOS)}.")
    return name


def inapplicable(scenario: str, target: Target) -> str | None:
    """Return why a target cannot be measured in a scenario, or None if it can."""
    if scenario == "off" or not target.compile_only:
        return None
    # Reading it, jax 0.10 to 0.12 say: "PjRtCompiler must be constructed with a Client".
    return (
        f"{target.name} is compiled for without a device, and what JAX's persistent cache then "
        "writes it cannot read back: only the scenario 'off' can be measured"
    )


def forgotten(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what it says of the persistent cache."""
    return {name: text for name, text in inherited.items() if not name.startswith(_VARIABLES)}


def environment(scenario: str, folder: str) -> dict[str, str]:
    """Return the environment variables that put a process into a scenario."""
    if scenario == "off":
        # With the cache on, even without a folder, JAX hashes every module inside the compile
        # stage (jax 0.8 to 0.12).
        return {"JAX_ENABLE_COMPILATION_CACHE": "0"}
    variables = {"JAX_ENABLE_COMPILATION_CACHE": "1", "JAX_COMPILATION_CACHE_DIR": folder}
    if scenario != "default":
        variables["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        variables["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    return variables


def outcomes(scenario: str) -> list[tuple[str, dict[str, int]]]:
    """Return what a compile request may come to: the stage it then is, and the proof it needs."""
    return {
        "cold": [("compile", _WRITTEN)],
        "warm": [("load", _HIT)],
        "default": [("load", _HIT), ("compile", _WRITTEN), ("compile", _REQUEST)],
    }[scenario]


def first_call_proofs(scenario: str) -> list[dict[str, int]]:
    """Return what a first call may show: a trace, a lowering, and an outcome."""
    return [{**_TRACED, **proof} for _, proof in outcomes(scenario)]


def entries(folder: Path) -> dict[str, int]:
    """Return the size in bytes of each entry in a cache directory, by file name."""
    return {file.name: file.stat().st_size for file in folder.glob("*-cache")}


def use(folder: Path) -> None:
    """Make the running process use another cache directory from now on.

    `jax.config.update` alone is ignored once JAX has looked (jax 0.8 to 0.12).
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    jax.config.update("jax_compilation_cache_dir", str(folder))
    compilation_cache.reset_cache()


@contextmanager
def switched_off() -> Iterator[None]:
    """Keep the persistent cache out of what is measured inside: the reference program."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

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
