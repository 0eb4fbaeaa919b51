"""Find the workloads of a folder of benchmarks, and choose among them and their cases."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import UsageError, find_name, match_names
from harness.workload.check import check
from harness.workload.filters import is_value, wanted_values
from harness.workload.location import asv_path, import_file, is_at_home, search
from harness.workload.workload import Case, Workload, WorkloadError, enumerate_cases, name_of


@dataclass
class Found:
    """The workloads of a folder, and what of it cannot be used."""

    workloads: list[type[Workload]] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    """A file that cannot be imported or a workload that is declared wrongly, to the reason."""

    def broken_names(self) -> dict[str, str]:
        """Return the reasons by the names of modules and workloads, as names of workloads begin."""
        names = {
            place: ".".join(Path(place).parts).removesuffix(".py").removesuffix(".__init__")
            for place in self.broken
        }
        return {names[place]: reason for place, reason in self.broken.items() if " " not in place}


def discover(folder: Path) -> Found:
    """Import every module below `folder` and return the workloads that are defined there."""
    folder = folder.resolve()
    if not folder.is_dir():
        raise UsageError(
            f"There is no folder of benchmarks at {folder}. Go to your project, or name the folder "
            "with --benchmarks; `harness init` makes one."
        )
    search([*asv_path(), str(folder.parent), os.getcwd()])
    discovered = Found()
    variables: dict[type[Workload], str] = {}
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        if any(part.startswith((".", "_")) for part in parts if part != "__init__"):
            continue
        if parts[-1] == "__init__":
            parts = parts[:-1]
        module_name = ".".join(parts)
        try:
            module = import_file(module_name, file)
        except WorkloadError as error:
            discovered.broken[str(file.relative_to(folder))] = str(error)
            continue
        except (Exception, SystemExit) as error:  # a user's module may even exit
            place = str(file.relative_to(folder))
            discovered.broken[place] = f"importing it raised {type(error).__name__}: {error}."
            continue
        for variable, value in vars(module).items():
            if (
                inspect.isclass(value)
                and issubclass(value, Workload)
                and not inspect.isabstract(value)
                and value not in variables  # a class may have two names
                and (value.__module__ == module_name or not is_at_home(value))
            ):
                variables[value] = f"{variable} in {file.relative_to(folder)}"
                if astray := _astray(value, module_name, variable):
                    discovered.broken[variables[value]] = astray
                    continue
                try:
                    check(value)
                except WorkloadError as error:
                    discovered.broken[name_of(value)] = str(error)
                else:
                    discovered.workloads.append(value)
    _leave_out_namesakes(discovered, variables)
    return discovered


def _astray(workload: type[Workload], module: str, variable: str) -> str:
    """Return why a measuring process, which imports the module, would not find a class in it."""
    if workload.__module__ == module and (
        "<locals>" in workload.__qualname__ or is_at_home(workload)
    ):
        return ""
    return (
        f"it is the class {workload.__qualname__} of {workload.__module__}, which is not found "
        f"there by that name. Give it the name that it is assigned to: `{variable} = "
        f"type({variable!r}, (Base,), {{...}})` or `class {variable}(Base): ...`."
    )


def _leave_out_namesakes(discovered: Found, places: Mapping[type[Workload], str]) -> None:
    """Move workloads of one name to what is broken: records and asv tell them by their names."""
    same: dict[str, list[type[Workload]]] = {}
    for workload in discovered.workloads:
        same.setdefault(name_of(workload), []).append(workload)
    for name, several in same.items():
        if len(several) > 1:
            discovered.workloads = [one for one in discovered.workloads if one not in several]
            where = ", ".join(places[one] for one in several)
            discovered.broken[name] = (
                f"{len(several)} workloads have this name: {where}. Records and asv tell workloads "
                "by their names. Give each class its own, such as type('Gelu', (Base,), {...})."
            )


def select(workloads: Sequence[type[Workload]], patterns: Sequence[str]) -> list[type[Workload]]:
    """Return the workloads whose name matches any of the regular expressions (all, without any)."""
    if not patterns:
        return list(workloads)
    chosen: list[type[Workload]] = []
    for pattern in patterns:
        names = match_names(pattern, map(name_of, workloads), "workload")
        chosen += [w for w in workloads if name_of(w) in names and w not in chosen]
    return chosen


def one_workload(pattern: str, benchmarks: Path) -> type[Workload]:
    """Return the workload whose name matches, or is."""
    discovered = discover(benchmarks)
    try:
        chosen = select(discovered.workloads, [pattern])
    except UsageError as error:
        broken = "".join(f" {place}: {reason}" for place, reason in discovered.broken.items())
        raise UsageError(f"{error}{broken}") from None
    for same in (str, str.casefold):
        exact = [w for w in chosen if same(pattern) in map(same, (name_of(w), w.__qualname__))]
        if len(exact) == 1:
            return exact[0]
    if len(chosen) > 1:
        names = ", ".join(name_of(w) for w in chosen)
        raise UsageError(f"{pattern!r} matches {len(chosen)} workloads; name one of {names}.")
    return chosen[0]


def case_filter(choices: Sequence[str]) -> Callable[[Case], bool]:
    """Return a test for cases that have one of the chosen values on every chosen axis.

    `choices` are `AXIS=VALUE` as typed on a command line.
    """
    wanted = wanted_values(choices)

    def keep(case: Case) -> bool:
        coordinates = {axis.casefold(): value for axis, value in case.coordinates.items()}
        return all(
            axis in coordinates and is_value(coordinates[axis], texts)
            for axis, texts in wanted.items()
        )

    return keep


def left_out(workloads: Sequence[type[Workload]], choices: Sequence[str]) -> dict[str, list[str]]:
    """Return why workloads have none of the chosen cases: the names of those by each reason."""
    by_reason: dict[str, list[str]] = {}
    for workload in workloads:
        cases = list(enumerate_cases(workload))
        if any(map(case_filter(choices), cases)):
            continue
        axes = {axis.casefold(): axis for axis in cases[0].coordinates}
        wanted = wanted_values(choices)
        lacking = [axis for axis in wanted if axis not in axes]
        reason = f"no axis {lacking[0]!r}" if lacking else f"no case with {' and '.join(choices)}"
        by_reason.setdefault(reason, []).append(name_of(workload))
    return by_reason


def with_axes(workloads: Sequence[type[Workload]], choices: Sequence[str]) -> list[type[Workload]]:
    """Return the workloads that have a case left; raise with what there is if none has."""
    keep = case_filter(choices)
    left = [workload for workload in workloads if any(map(keep, enumerate_cases(workload)))]
    if left:
        return left
    values: dict[str, dict[str, None]] = {}
    for workload in workloads:
        for case in enumerate_cases(workload):
            for axis, value in case.coordinates.items():
                values.setdefault(axis, {})[str(value)] = None
    for axis in wanted_values(choices):
        find_name(axis, values, "axis")
    listing = "; ".join(f"{axis}: {', '.join(texts)}" for axis, texts in values.items())
    raise UsageError(f"No case has {' and '.join(choices)}. The axes and their values: {listing}.")
