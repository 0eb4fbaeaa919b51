"""Commands made of functions: their options and arguments, and those that several share.

An option is told beside the type and default of a parameter: with `live=Option(help="Show it.")`,
the parameter `live: bool = False` is click's flag `--live`. A group of options is one parameter: of
the type :class:`Filters` or :class:`Output`.
"""

from __future__ import annotations

import enum
import inspect
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import click

from harness.cli.lazy import SETTINGS, Command
from harness.cli.output import Format, Output
from harness.errors import UsageError
from harness.stages.scenarios.registry import SCENARIOS
from harness.workload.filters import Filters as Filters


class Option:
    """What click's option is told, but for what the type and the default of the parameter say.

    Args:
        names: `--name` and `-n`, or `--name/--no-name`; without any it is the parameter's.
        settings: click's, and `min` and `max` of a number.
    """

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names, self.settings = names, settings

    def make(self, name: str, kind: Any, default: Any) -> click.Parameter:
        """Return click's option of a parameter of that name, type and default."""
        settings: dict[str, Any] = {"show_default": True, "show_envvar": True, **self.settings}
        dashed = name.strip("_").replace("_", "-")
        names = self.names or (f"--{dashed}",)
        if _without_none(kind) is bool:
            return click.Option([name, *names], is_flag=True, default=default, **settings)
        return click.Option([name, *names], **_typed(settings, name, kind, default, "multiple"))


class Argument(Option):
    """The same of an argument, which has no names."""

    def make(self, name: str, kind: Any, default: Any) -> click.Parameter:
        """Return click's argument of a parameter of that name, type and default."""
        settings = _typed({**self.settings}, name, kind, default, "nargs")
        if not settings["required"] and not settings["metavar"].startswith("["):
            settings["metavar"] = f"[{settings['metavar']}]"
        if "envvar" in settings:  # click tells it of options
            settings["help"] += f"  [env var: {settings['envvar']}]"
        return click.Argument([name], **settings)


class _FloatRange(click.FloatRange):
    """Refuses `nan`, which is in every range as far as comparisons go."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        return number


def _typed(
    settings: dict[str, Any], name: str, kind: Any, default: Any, several: str
) -> dict[str, Any]:
    """Return settings with what the type and the default say."""
    kind = _without_none(kind)
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
        settings[several] = True if several == "multiple" else -1
    limits = {key: settings.pop(key) for key in ("min", "max") if key in settings}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        kind = click.Choice(kind, settings.pop("case_sensitive", True))
    elif kind is Path:
        kind = click.Path(path_type=Path)
    elif limits:
        kind = (click.IntRange if kind is int else _FloatRange)(**limits)
        kind.name = "number"  # `'x' is not a valid number`
    if not isinstance(kind, click.Choice):
        settings.setdefault("metavar", name.strip("_").upper())
    settings["required"] = default is inspect.Parameter.empty
    if not settings["required"] and default is not None:
        settings |= {"default": default} | ({"show_default": False} if default == "" else {})
    return {**settings, "type": kind}


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (one for one in get_args(kind) if one is not type(None))
    return kind


def _split(context: click.Context, option: click.Parameter, values: Sequence[str]) -> list[str]:
    """Return the names in texts that may have several, joined by commas."""
    return [name.strip() for text in values for name in text.split(",")]


def duration(option: str, text: str) -> float | None:
    """Return the seconds of a text such as `60s`, `5min` or `1.5h`; None for "".

    Raises:
        UsageError: it is no such text.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|)", text.strip())
    seconds = float(match[1]) * {"": 1, "s": 1, "min": 60, "h": 3600}[match[2]] if match else 0.0
    if text and not seconds:
        raise UsageError(
            f"{option} {text!r}: expected a number and s, min or h, such as 60s or 5min."
        )
    return seconds or None


Select = Annotated[
    list[str] | None,
    Option(
        "--select", "-s", metavar="REGEX", help="Only workloads whose name matches; repeatable."
    ),
]
Workloads = Annotated[
    list[str] | None,
    Argument(metavar="[SELECT]...", help="The same as --select, without the option."),
]
Cases = Annotated[
    list[str] | None,
    Option(
        "--case",
        metavar="AXIS=VALUE",
        help="Only cases with this value; transform=gradient works too. Repeat an axis for several "
        "of its values.",
    ),
]
Stages = Annotated[
    list[str] | None,
    Option("--stage", metavar="STAGE", help="Only this stage; repeat for several."),
]
Targets = Annotated[
    list[str] | None,
    Option("--target", metavar="TARGET", help="Only this target; repeat for several."),
]
Scenarios = Annotated[
    list[str] | None,
    Option(
        "--scenario",
        metavar="SCENARIO",
        callback=_split,
        help=f"Only these, joined by commas: {', '.join(SCENARIOS)}.",
    ),
]
MeasuredTargets = Annotated[
    list[str] | None,
    Option(
        "--target",
        metavar="TARGET",
        help="cpu, gpu, tpu; compile-only gpu:h200, tpu:v5e, ... `harness targets` lists all; "
        "gpu:FILE.pbtxt is one, too. Repeat for several. Without it, wherever this machine can.",
    ),
]
ResultsTree = Annotated[
    Path,
    Option("--results", "-r", metavar="DIR", help="The results tree.", envvar="HARNESS_RESULTS"),
]
ReadResults = Annotated[
    Path,
    Option(
        "--results",
        "-r",
        metavar="PATH",
        help="A results tree, or one file of records or rows.",
        envvar="HARNESS_RESULTS",
    ),
]
Benchmarks = Annotated[Path, Option("--benchmarks", metavar="DIR", help="The folder of workloads.")]
Effort = Annotated[
    str,
    Option(
        "--effort",
        help="quick, default, thorough, or processes x passes: 6x1. quick is 1x1, default 8x1, "
        "thorough 8 to 32 x1, until the interval of every median is within 5 %.",
    ),
]
Machine = Annotated[str | None, Option(help="Name of this machine in the results.")]
Seed = Annotated[int | None, Option(help="Seed of the order of cases.")]
Figure = Annotated[
    Path | None,
    Option(
        "--figure",
        metavar="FILE",
        help="Draw it as well, as .svg, .png or .html; needs the extra 'figures'.",
    ),
]
OutputFormat = Annotated[
    Format,
    Option(
        "--format",
        metavar="FORMAT",
        help="table, markdown (to paste), json or csv (everything in full).",
        case_sensitive=False,
    ),
]
OutputFile = Annotated[
    Path | None,
    Option("--output", "-o", metavar="FILE", help="Write into a file instead of printing."),
]

CacheDirectory = Annotated[
    str,
    Argument(
        metavar="DIR",
        help="The directory that jax_compilation_cache_dir names; gs://… with etils installed.",
        envvar="JAX_COMPILATION_CACHE_DIR",
    ),
]
MaxSize = Annotated[
    int,
    Option(
        "--max-size",
        metavar="BYTES",
        min=-1,
        help="The programs' size cap; -1: none. JAX calls it jax_compilation_cache_max_size.",
        envvar="JAX_COMPILATION_CACHE_MAX_SIZE",
    ),
]
Profile = Annotated[
    Path, Argument(metavar="FOLDER", help="What `harness profile -o FOLDER` wrote.")
]


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
    Output: (
        _output,
        {
            "format_": (OutputFormat, Format.table),
            "output": (OutputFile, None),
        },
    ),
}
"""How a group is made of its options: each with its type and default."""


def command(
    cls: type[click.Command] = Command, **settings: Any
) -> Callable[[Callable[..., None]], click.Command]:
    r"""Make a command of a function, whose docstring is its help; `\b` keeps a paragraph's lines.

    Each parameter has its `Option` or `Argument` among the settings, or behind its type, or stands
    for a group of options; other settings are the command's, such as `common`.
    """
    common = {name: one for name, one in settings.items() if isinstance(one, Option)}
    given = {name: one for name, one in settings.items() if name not in common}

    def made(function: Callable[..., None]) -> click.Command:
        parameters, call = _spread(function, common)
        own: dict[str, Any] = {
            "help": inspect.cleandoc(function.__doc__ or "").replace("\\b\n", "\b\n"),
            "context_settings": {**SETTINGS, **given.pop("context_settings", {})},
        }
        return cls(function.__name__, callback=call, params=parameters, **own | given)

    return made


def _spread(
    function: Callable[..., None], options: Mapping[str, Option]
) -> tuple[list[click.Parameter], Callable[..., None]]:
    """Return click's parameters for a function, every one of groups, and what takes their values.

    What is given several times is a list, and the parameter's default where it is not given.
    """
    made: dict[str, click.Parameter] = {}
    groups = {}
    defaults = {}

    def add(name: str, annotation: Any, default: Any) -> None:
        kind, option = get_args(annotation) if name not in options else (annotation, options[name])
        made[name] = option.make(name, kind, default)
        defaults[name] = default

    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        name, annotation = parameter.name, parameter.annotation
        if annotation in _GROUPS:
            groups[name] = _GROUPS[annotation]
            for member, words in groups[name][1].items():
                add(member, *words)
        else:
            add(name, annotation, parameter.default)

    def called(**given: Any) -> None:
        for name, value in given.items():
            if isinstance(value, tuple | list):
                given[name] = list(value) or defaults[name]
        for name, (make, members) in groups.items():
            given[name] = make(**{member: given.pop(member) for member in members})
        function(**given)

    return list(made.values()), called
