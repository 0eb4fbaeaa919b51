"""Where a workload is found by another process: its module and file, or a pickle of the class."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from harness.workload.workload import Workload, WorkloadError, where


class Source(msgspec.Struct, frozen=True):
    """Where a workload class is to be found by another process."""

    module: str
    qualname: str
    file: str = ""
    pickled: str = ""
    path: tuple[str, ...] = ()
    """Where the process that found it looks for modules; absolute."""


def is_at_home(workload: type[Workload]) -> bool:
    """Tell whether the module that a class says it is of holds it under its own name."""
    value: Any = sys.modules.get(workload.__module__)
    for part in workload.__qualname__.split("."):
        value = getattr(value, part, None)
    return value is workload


def locate(workload: type[Workload]) -> Source:
    """Describe where another process finds `workload`."""
    module = workload.__module__
    path = tuple(map(os.path.abspath, sys.path))
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None) if module != "__main__" else None
    if file and "<locals>" not in workload.__qualname__:
        if not is_at_home(workload):
            raise WorkloadError(
                f"{file} has no {workload.__qualname__} that is this class, so the process that "
                "measures would not find it. Give a class the name that it is assigned to, such "
                "as `Gelu = type('Gelu', (Base,), {...})`, and delete none."
            )
        return Source(module, workload.__qualname__, str(Path(file).resolve()), path=path)
    try:
        pickled = base64.b64encode(_cloudpickle().dumps(workload)).decode()
    except Exception as error:  # whatever a user's class holds may refuse
        raise WorkloadError(
            f"{where(workload)} cannot be sent to the process that measures: {error}. Define it at "
            "the top of a module, or keep what cannot be pickled out of it."
        ) from error
    return Source(module, workload.__qualname__, "", pickled, path)


def load(source: Source) -> type[Workload]:
    """Return the class that :func:`locate` described; its `path` is searched last from now on."""
    search(source.path)
    if source.pickled:
        return _cloudpickle().loads(base64.b64decode(source.pickled))  # type: ignore[no-any-return]
    value: Any = import_file(source.module, Path(source.file))
    for part in source.qualname.split("."):
        value = getattr(value, part)
    return value  # type: ignore[no-any-return]


def search(folders: Iterable[str]) -> None:
    """Have folders searched for modules, after all others.

    Python's own modules and installed ones come first: a script called random.py or click.py beside
    the one that is measured would otherwise stand for theirs in JAX and here.
    """
    sys.path += [one for one in dict.fromkeys(folders) if one not in sys.path]


def asv_path() -> list[str]:
    """Return the folders of ASV_PYTHONPATH: asv 0.6.6 hands those on, and not PYTHONPATH."""
    return [one for one in os.environ.get("ASV_PYTHONPATH", "").split(os.pathsep) if one]


def _cloudpickle() -> Any:
    import cloudpickle  # few classes need it, and measuring processes import as little as they can

    return cloudpickle


def import_file(module: str, file: Path) -> ModuleType:
    """Import `module` from `file`, whatever is on the path.

    Only the top package is looked for by its file, so that a folder called `benchmarks` is the
    user's and not another distribution's; the folder above it is not put before installed packages.
    """
    parts = module.split(".")
    is_package = file.name == "__init__.py"
    depth = len(parts) - (0 if is_package else 1)
    top = file.parents[depth - 1] if depth else None
    _load_top(parts[0], file if top is None else top / "__init__.py", top)
    imported = importlib.import_module(module)
    there = getattr(imported, "__file__", None)
    if there and Path(there).resolve() != file.resolve():
        raise WorkloadError(
            f"{file} cannot be imported as {module!r}: that is {there}. Rename one of the two."
        )
    return imported


def _check_is_ours(loaded: ModuleType, file: Path, folder: Path | None) -> None:
    ours, there = folder or file, getattr(loaded, "__file__", None) or ""
    places = list(getattr(loaded, "__path__", ())) if folder else [there]
    if ours.resolve() not in [Path(place).resolve() for place in places if place]:
        raise WorkloadError(
            f"{ours} cannot be imported as {loaded.__name__!r}: a module of that name is loaded "
            f"already, from {there or ', '.join(places) or 'Python itself'}. Rename yours."
        )


def _load_top(name: str, file: Path, folder: Path | None) -> None:
    if name in sys.modules:
        _check_is_ours(sys.modules[name], file, folder)
        return
    locations = [str(folder)] if folder is not None else None
    if folder is not None and not file.exists():
        package = ModuleType(name)  # a folder without __init__.py
        package.__path__ = [str(folder)]
        sys.modules[name] = package
        return
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=locations)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be imported as {name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:  # Ctrl-C included: half a module must not be found by the next import
        del sys.modules[name]
        raise
