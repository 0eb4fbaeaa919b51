"""asv's configuration: the text of a new one, and what an existing one lacks."""

from __future__ import annotations

import json
import sys
from typing import Any

from harness.scaffold.project import Project, load
from harness.scaffold.templates import render
from harness.targets.host import installed

PLUGIN = ".harness.asv.environment"

NEWEST_PYTHON = "3.13"
"""One that the newest JAX has wheels for; JAX after 0.10.2 has none for 3.11."""

FORKSERVER = """\
    // The benchmarks only read what setup_cache measured and wake no JAX backend, so forking is
    // safe, and much faster than asv's default (spawn).
    "launch_method": "forkserver",
"""
SPAWN = """\
    // Importing the function that is measured starts a JAX backend, which does not survive forking.
    "launch_method": "spawn",
"""
INSTALL = (
    "in-dir={env_dir} python -m pip install {wheel_file}",
    "in-dir={env_dir} python -m pip install --force-reinstall --no-deps {wheel_file}",
)
"""asv's default is one call with --force-reinstall, which reinstalls the dependencies as well: the
newest JAX instead of the one that an environment is called after (asv 0.6.6)."""

WHEEL = f"""\
    // asv's default collects the wheels of the dependencies as well and cannot decide between them.
    "build_command": ["python -m pip wheel --no-deps -w {{build_cache_dir}} {{build_dir}}"],
    // asv's default reinstalls the dependencies as well: the newest JAX, whatever the matrix says.
    "install_command": [
        "{INSTALL[0]}",
        "{INSTALL[1]}"
    ],
"""
NOTHING_TO_BUILD = """\
    // Nothing here that pip could build: no pyproject.toml with a project, no setup.py.
    "build_command": [],
    "install_command": [],
    "uninstall_command": [],
"""


def new(project: Project, wakes_backend: bool) -> str:
    """Return a configuration for a project, with this interpreter's Python and JAX."""
    depth = len(project.subfolder.split("/")) if project.subfolder else 0
    subfolder = f'    "repo_subdir": {_text(project.subfolder)},\n' if depth else ""
    return render(
        "asv.conf.json",
        project=_text(project.name),
        repo=_text("/".join([".."] * depth) or "."),
        subfolder=subfolder,
        python=_text(python()),
        jax=_text(installed("jax")),
        asv_runner=_text(installed("asv_runner")),
        build=WHEEL if project.builds else NOTHING_TO_BUILD,
        launch=(SPAWN if wakes_backend else FORKSERVER).rstrip("\n"),
        benchmarks=_text(project.benchmarks),
    )


def lacking(project: Project, wakes_backend: bool) -> tuple[str, ...]:
    """Return the lines that the configuration there needs for workloads, and does not have."""
    if project.configuration is None:
        return ()
    conf = load(project.configuration)
    lacks = []
    if not any(str(plugin).lstrip(".") == PLUGIN.lstrip(".") for plugin in conf.plugins):
        lacks.append(f'"plugins": ["{PLUGIN}"],')
    if wakes_backend and conf.launch_method == "forkserver":
        lacks.append('"launch_method": "spawn",')
    if not wakes_backend and conf.launch_method in (None, "auto"):
        lacks.append('"launch_method": "forkserver",')
    requirements = [key for part in ("req", "") for key in _required(conf.matrix, part)]
    if conf.environment_type != "existing" and "jax-harness" not in requirements:
        lacks.append('"matrix": {"req": {"jax-harness": [""]}},')
    if conf.environment_type != "existing" and "jax" in requirements and not conf.install_command:
        lacks.append(f'"install_command": {_text(list(INSTALL))},')
    return tuple(lacks)


def python() -> str:
    """Return this interpreter's version, in two numbers."""
    return ".".join(map(str, sys.version_info[:2]))


def pythons() -> list[str]:
    """Return those of a night: one for the newest JAX, where this one cannot have it, and this."""
    return [*([NEWEST_PYTHON] if sys.version_info < (3, 12) else []), python()]


def _required(matrix: Any, part: str) -> list[str]:
    """Return the packages that a matrix names, in `req` or, as in old files, at its top."""
    found = matrix.get(part, {}) if part else matrix
    return [str(key).removeprefix("pip+") for key in found]


def _text(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)
