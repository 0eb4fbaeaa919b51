"""What is written: asv's configuration, and modules with an example or a workload."""

from __future__ import annotations

import json
import keyword
import re
import string
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from harness.init.function import Argument, Checked, ChosenFunction
from harness.init.project import Project
from harness.targets.host import installed


class _Text(string.Template):
    """`$` means something in workflows and `@` in decorators."""

    delimiter = "%%"


def render(template: str, /, **values: str) -> str:
    """Return the text of a template with its names replaced; a name left over is an error."""
    file = resources.files(__package__) / "templates" / f"{template}.txt"
    return _Text(file.read_text(encoding="utf-8")).substitute(values)


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


def configuration(project: Project, wakes_backend: bool) -> str:
    """Return a configuration for a project, with this interpreter's Python and JAX."""
    at = project.subfolder
    return render(
        "asv.conf.json",
        project=_json(project.name),
        repo=_json("/".join([".."] * len(Path(at).parts)) or "."),
        subfolder=f'    "repo_subdir": {_json(at)},\n' if at else "",
        python=_json(python()),
        jax=_json(installed("jax")),
        asv_runner=_json(installed("asv_runner")),
        build=WHEEL if project.builds else NOTHING_TO_BUILD,
        launch=(SPAWN if wakes_backend else FORKSERVER).rstrip("\n"),
        benchmarks=_json(project.benchmarks),
    )


def lacking(conf: Any, wakes_backend: bool) -> tuple[str, ...]:
    """Return the lines that a configuration needs for workloads, and does not have."""
    lacks = []
    if not any(str(plugin).lstrip(".") == PLUGIN.lstrip(".") for plugin in conf.plugins):
        lacks.append(f'"plugins": ["{PLUGIN}"],')
    if wakes_backend and conf.launch_method == "forkserver":
        lacks.append('"launch_method": "spawn",')
    if not wakes_backend and conf.launch_method in (None, "auto"):
        lacks.append('"launch_method": "forkserver",')
    # In old files packages stand at the top of the matrix.
    requirements = [
        str(key).removeprefix("pip+") for key in {**conf.matrix, **conf.matrix.get("req", {})}
    ]
    if conf.environment_type != "existing" and "jax-harness" not in requirements:
        lacks.append('"matrix": {"req": {"jax-harness": [""]}},')
    if conf.environment_type != "existing" and "jax" in requirements and not conf.install_command:
        lacks.append(f'"install_command": {_json(list(INSTALL))},')
    return tuple(lacks)


def python() -> str:
    """Return this interpreter's version, in two numbers."""
    return ".".join(map(str, sys.version_info[:2]))


def night_python() -> str:
    """Return the version of Python for a night: one that can have the newest JAX."""
    return NEWEST_PYTHON if sys.version_info < (3, 12) else python()


def _json(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)


LINE = 88
"""The length at which the common formatters break a line."""


def module_name(subject: ChosenFunction, long: bool = False) -> str:
    """Return a name for the module: the function's, or with `long` after that of its own module.

    It has no leading underscore, which makes tools pass over a module.
    """
    parts = [*subject.module.split(".")[-1:], subject.name] if long else [subject.name]
    last = [part.split(".")[-1].strip("_") or "function" for part in parts]
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", "_".join(last)).lower()
    usable = snake.isidentifier() and not keyword.iskeyword(snake)
    return snake if usable else f"measured_{snake}"


def workload(checked: Checked, module: str) -> str:
    """Return the text of `module`: a workload for a function, swept over a size if that traces."""
    subject, size = checked.subject, checked.size
    imported, function = _named(subject.place, checked.hidden)
    imports = {imported}
    if subject.inputs:
        imported, maker = _named(subject.inputs, checked.hidden)
        imports.add(imported)
        inputs = f"        return {maker}()"
        comment = "The arguments, as a tuple; each measuring process makes them anew."
    else:
        inputs = _returned([_spec(argument, size) for argument in subject.arguments])
        comment = (
            "The shapes and dtypes of the arguments; seeded random data is made when it is needed."
        )
    attributes = []
    if size is not None:
        attributes.append(f'    sweep = {{"size": [{size}, {4 * size}]}}')
    if subject.x64:
        attributes.append("    x64 = True  # 64-bit types in the measuring process")
    lines = [
        f'"""Measured by `harness run {module}` and by `asv run -b {module}`."""\n',
        *sorted(imports),
        f"\nfrom harness import Workload{', spec' if 'spec(' in inputs else ''}\n\n",
        f'class {class_name(module)}(Workload):\n    """{subject.dotted}."""\n',
        *attributes,
        *([""] if attributes else []),
        f"    # {comment}",
        f"    def inputs(self{', size' if size is not None else ''}):",
        f"{inputs}\n",
        f"    function = staticmethod({function})\n",
    ]
    return "\n".join(lines)


def _named(place: str, hidden: Sequence[str]) -> tuple[str, str]:
    """Return how a module is imported, and the name of what is wanted of it afterwards."""
    module, _, name = place.partition(":")
    if module in hidden:
        return f"from {module} import {name.partition('.')[0]}", name
    return f"import {module}", f"{module}.{name}"


def _returned(values: Sequence[str]) -> str:
    """Return a line that returns values; several where it gets too long."""
    whole = ", ".join(values) or "()"
    if len(whole) <= LINE - len("        return "):
        return f"        return {whole}"
    inner = "".join(f"            {value},\n" for value in values)
    return f"        return (\n{inner}        )"


def class_name(module: str) -> str:
    """Return a name for a class, after its module."""
    name = "".join(part[:1].upper() + part[1:] for part in module.split("_"))
    # `Workload` is imported there, and `True` is Python's.
    return f"Measured{name}" if name == "Workload" or keyword.iskeyword(name) else name


def _spec(argument: Argument, size: int | None) -> str:
    shape, dtype = argument
    sizes = ["size" if size is not None and one == size else str(one) for one in shape]
    inner = f"{sizes[0]}," if len(sizes) == 1 else ", ".join(sizes)
    return f'spec(({inner}), "{dtype}")'
