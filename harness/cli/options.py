"""Arguments and options that several commands share, one by one and in groups.

A command takes a group as one parameter, and :func:`command` spreads it: a parameter of the type
:class:`Filters`, :class:`Results` or :class:`Output` stands for all options of that group.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer
import typer.main
from typer.core import TyperArgument, TyperCommand

from harness.cli.lazy import SETTINGS
from harness.cli.output import Format, Output
from harness.declare.filters import Filters as Filters
from harness.errors import UsageError
from harness.stages.scenarios.registry import SCENARIOS

Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select", "-s", metavar="REGEX", help="Only workloads whose name matches; repeatable."
    ),
]
Workloads = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SELECT]...", help="The same as --select, without the option."),
]
Cases = Annotated[
    list[str] | None,
    typer.Option(
        "--case",
        metavar="AXIS=VALUE",
        help="Only cases with this value on this axis (transform=gradient works too); repeat an "
        "axis for several of its values.",
    ),
]
Stages = Annotated[
    list[str] | None,
    typer.Option("--stage", metavar="STAGE", help="Only this stage; repeat for several."),
]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="TARGET", help="Only this target; repeat for several."),
]
Scenarios = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario",
        metavar="SCENARIO",
        help=f"Only this state of the persistent cache: {', '.join(SCENARIOS)}; repeatable.",
    ),
]
MeasuredTargets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="Where to measure: cpu, gpu, tpu, or compile-only: gpu:h200, tpu:v5e, gpu:FILE.pbtxt "
        "(`harness targets` lists all); repeat for several. Without it, wherever this machine can.",
    ),
]
ResultsPath = Annotated[
    Path | None, typer.Argument(metavar="RESULTS", help="The same as --results.")
]
ResultsTree = Annotated[
    Path,
    typer.Option(
        "--results", "-r", metavar="DIR", help="The results tree.", envvar="HARNESS_RESULTS"
    ),
]
ReadResults = Annotated[
    Path | None,
    typer.Option(
        "--results",
        "-r",
        metavar="PATH",
        help="A results tree, or one file of records or rows.  [default: results]",
        envvar="HARNESS_RESULTS",
        show_default=False,
    ),
]
Benchmarks = Annotated[
    Path, typer.Option("--benchmarks", metavar="DIR", help="The folder of workloads.")
]
Effort = Annotated[
    str,
    typer.Option(
        "--effort",
        help="quick (1 process x 1 pass), default (8x1), thorough (8 to 32 x1, until the interval "
        "of every median is within 5 %), or PROCESSESxPASSES such as 6x1.",
    ),
]
Machine = Annotated[str | None, typer.Option(help="Name of this machine in the results.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the order of visits.")]
Figure = Annotated[
    Path | None,
    typer.Option(
        "--figure",
        metavar="FILE",
        help="Draw it as well, into a .svg, .png or .html file (extra 'figures').",
    ),
]
OutputFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        help="table, for a terminal; markdown, to paste; json or csv, everything in full.",
        case_sensitive=False,
    ),
]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write into a file instead of printing."),
]


@dataclass(frozen=True)
class Results:
    """Where results are read, said by `--results`, the variable, or the argument of old."""

    path: Path


def _results(folder: Path | None, results: Path | None) -> Results:
    said = results is not None and str(results) != os.environ.get("HARNESS_RESULTS")
    if said and folder not in (None, results):
        raise UsageError(f"Two places of results are given, {folder} and {results}: name one.")
    return Results(folder or results or Path("results"))


def _filters(**given: list[str] | None) -> Filters:
    return Filters(**{name: tuple(values or ()) for name, values in given.items()})


def _output(format_: Format, output: Path | None) -> Output:
    return Output(format_, output)


_GROUPS: Mapping[Any, tuple[Callable[..., Any], dict[str, tuple[Any, Any]]]] = {
    Filters: (
        _filters,
        {
            "select": (Select, None),
            "case": (Cases, None),
            "stage": (Stages, None),
            "target": (Targets, None),
            "scenario": (Scenarios, None),
        },
    ),
    Results: (_results, {"folder": (ResultsPath, None), "results": (ReadResults, None)}),
    Output: (_output, {"format_": (OutputFormat, Format.table), "output": (OutputFile, None)}),
}
"""How a group is made of its options: each with its type and default."""


def command(help: str, **settings: Any) -> Callable[[Callable[..., None]], TyperCommand]:
    """Make a command of a function, whose parameters may be groups of options."""

    def made(function: Callable[..., None]) -> TyperCommand:
        app = typer.Typer(**SETTINGS)
        app.command(help=help, **settings)(spread(function))
        command = cast(TyperCommand, typer.main.get_command(app))
        for parameter in command.params:
            shown: Any = parameter
            shown.display_type_rich = functools.partial(_value, parameter)
            shown.process_value = functools.partial(_checked, parameter.process_value)
        return command

    return made


def _checked(process: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    """Return a value that typer has checked; pydantic's words for a wrong one do not name it."""
    try:
        return process(ctx, value)
    except typer.BadParameter as error:
        said = value if isinstance(value, str) else ", ".join(map(str, value or ()))
        message = error.message.partition(", unable to")[0].removeprefix("Value error, ")
        error.message = message.replace("Input", repr(said), 1)
        raise


def _value(parameter: Any, ctx: Any) -> str | None:
    """Return how help names a value; typer 0.29 shows Python's types, `<list[str]>`."""
    if isinstance(parameter, TyperArgument):
        return None
    if parameter.type_descriptor.is_choice:
        return str(parameter.display_type(ctx)).strip("<>").removeprefix("list[").rstrip("]")
    return str(parameter.metavar or parameter.name.strip("_").upper())


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function that takes every option of a group of options as a parameter."""
    parameters, groups = [], {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.annotation in _GROUPS:
            groups[parameter.name] = _GROUPS[parameter.annotation]
            parameters += [
                inspect.Parameter(name, _KEYWORD, annotation=annotation, default=default)
                for name, (annotation, default) in groups[parameter.name][1].items()
            ]
        else:
            parameters.append(parameter.replace(kind=_KEYWORD))

    def called(**given: Any) -> None:
        for name, (make, members) in groups.items():
            given[name] = make(**{member: given.pop(member) for member in members})
        function(**given)

    called.__dict__["__signature__"] = inspect.Signature(parameters)
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
