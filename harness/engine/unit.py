"""A unit of work: one workload, one process's share; and what the process says while it works.

Units are plain data, so that they can be sent to another machine. A unit names its workload by
module and file; only a class that has no file (typed at a prompt) travels as a pickle.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from harness.declare.source import comparison_version_of, version_of
from harness.declare.workload import Case, Workload, WorkloadError, enumerate_cases, where
from harness.records.schema import Record


class Source(msgspec.Struct, frozen=True):
    """Where a workload class is to be found by another process."""

    module: str
    qualname: str
    file: str = ""
    pickled: str = ""


class CaseRef(msgspec.Struct):
    """One case: found by position, and held against its name."""

    index: int
    id: str
    key: str
    fingerprint: str = ""
    """The program that the persistent cache must answer with, where that is known."""
    extra_ns: dict[str, float] = msgspec.field(default_factory=dict)
    """Nanoseconds of extra work by stage; see :mod:`harness.stages.injection`. Ordinarily none."""


class Unit(msgspec.Struct):
    """What one process is asked to do, and what it writes into each record."""

    source: Source
    target: str
    platforms: str
    cpu_devices: int
    """How many CPU devices the process makes; 0 leaves it to JAX."""
    x64: bool
    cases: list[CaseRef]
    passes: int
    seed: int
    process_key: str
    reference_key: str
    base: dict[str, Any]
    """Fields of `Record` that are the same for all records of the unit."""
    scenario: str = "off"
    """The state of the persistent cache; see :mod:`harness.stages.scenarios`."""
    cache_folder: str = ""
    """The directory of the persistent cache; empty where the scenario is `off`."""
    spawned_ns: int = 0
    """The monotonic clock when the process was started."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables that the target, or the threads of a comparison, need in the process."""
    backend: str = ""
    """Who computes, in a comparison with a baseline; empty for an ordinary measurement."""
    threads: str = ""
    """How many threads a comparison may use."""
    precision: str = ""
    """Of float32 products, for a backend that reads it from the environment."""
    description: str = ""
    """What tells the compiler of a compile-only target's device; empty for a real one."""
    programs: str = ""
    """The folder in which the texts of what is built are kept; empty where they are not."""
    surroundings: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the process would find out about its machine, found out beforehand to save its time."""


class Done(msgspec.Struct, tag="done"):
    """A record is complete."""

    record: Record


class Hello(msgspec.Struct, tag="hello"):
    """The process has started and knows its environment."""

    environment: msgspec.Raw
    load_average: list[float]


class Fatal(msgspec.Struct, tag="fatal"):
    """The process cannot measure anything, for a reason that the user can mend."""

    reason: str


class Bye(msgspec.Struct, tag="bye"):
    """The process is through; how much of its time since `Hello` was inside timed regions."""

    timed_ns: float
    wall_ns: float


Message = Done | Hello | Fatal | Bye

encode_message = msgspec.json.Encoder().encode
decode_message = msgspec.json.Decoder(Message).decode
encode_unit = msgspec.json.Encoder().encode
decode_unit = msgspec.json.Decoder(Unit).decode


def locate(workload: type[Workload]) -> Source:
    """Describe where another process finds `workload`."""
    module = workload.__module__
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None) if module != "__main__" else None
    if file and "<locals>" not in workload.__qualname__:
        return Source(module, workload.__qualname__, str(Path(file).resolve()))
    import cloudpickle

    try:
        pickled = base64.b64encode(cloudpickle.dumps(workload)).decode()
    except Exception as error:  # whatever a user's class holds may refuse
        raise WorkloadError(
            f"{where(workload)} cannot be sent to the process that measures: {error}. Define it at "
            "the top of a module, or keep what cannot be pickled out of it."
        ) from error
    return Source(module, workload.__qualname__, "", pickled)


def load(source: Source) -> type[Workload]:
    """Return the class that :func:`locate` described."""
    if source.pickled:
        import cloudpickle

        return cloudpickle.loads(base64.b64decode(source.pickled))  # type: ignore[no-any-return]
    found: Any = import_file(source.module, Path(source.file))
    for part in source.qualname.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def workload_of(unit: Unit) -> type[Workload]:
    """Return the class that a unit is about, once its source is known to be the one meant.

    Records say which version was measured; the file may have been edited since that was found out,
    or be another one on another machine. A class without a file is always the one that was sent.

    Raises:
        WorkloadError: the source is another one; both versions are named.
    """
    workload = load(unit.source)
    expected = unit.base.get("version")
    if not unit.source.pickled and expected:
        found = (comparison_version_of if unit.backend else version_of)(workload)
        if found != expected:
            raise WorkloadError(
                f"{where(workload)} has version {found} where it is measured, and {expected} where "
                "that was asked for: the source differs. Bring both to one commit, and run again."
            )
    return workload


def matched(unit: Unit, workload: type[Workload]) -> Iterator[tuple[CaseRef, Case | None, str]]:
    """Yield each case of a unit as this process finds it; None, and why, where it finds another."""
    known = list(enumerate_cases(workload, [unit.target]))
    for ref in unit.cases:
        case = known[ref.index] if ref.index < len(known) else None
        if case is not None and case.id == ref.id:
            yield ref, case, ""
        else:
            reason = (
                f"case {ref.index} is {case.id if case else 'missing'} in the measuring process, "
                f"{ref.id} outside: a sweep must not depend on the process"
            )
            yield ref, None, reason


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
    return importlib.import_module(module)


def _check_is_ours(loaded: ModuleType, file: Path, folder: Path | None) -> None:
    if folder is None:
        places = [getattr(loaded, "__file__", None) or ""]
        ours = file
    else:
        places = list(getattr(loaded, "__path__", ()))
        ours = folder
    if ours.resolve() not in [Path(place).resolve() for place in places if place]:
        name = loaded.__name__
        there = getattr(loaded, "__file__", None) or ", ".join(places) or "Python itself"
        raise WorkloadError(
            f"{ours} cannot be imported as {name!r}: a module of that name is loaded already, from "
            f"{there}. Rename yours."
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
