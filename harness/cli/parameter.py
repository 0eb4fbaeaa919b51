"""An option or argument of a command, told beside the type and default of a function's parameter.

With `live=Option(help="Show it.")`, the parameter `live: bool = False` is click's flag `--live`.
"""

from __future__ import annotations

import enum
import inspect
import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import click


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
        kind = (click.IntRange if kind is int else click.FloatRange)(**limits)
        kind.name = "number"  # `'x' is not a valid number`
    if not isinstance(kind, click.Choice):
        settings.setdefault("metavar", name.strip("_").upper())
    settings["required"] = default is inspect.Parameter.empty
    if not settings["required"] and default is not None:
        settings |= {"default": default} | ({"show_default": False} if default == "" else {})
    return {**settings, "type": kind}


def _without_none(kind: Any) -> Any:
    """Return the type of `kind | None`."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (one for one in get_args(kind) if one is not type(None))
    return kind
