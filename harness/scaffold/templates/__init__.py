"""The files that `harness init` writes, with %%{names} in place of what differs."""

from __future__ import annotations

import string
from importlib import resources


class _Text(string.Template):
    """`$` means something in workflows and `@` in decorators."""

    delimiter = "%%"


def render(template: str, /, **values: str) -> str:
    """Return the text of a template with its names replaced; a name left over is an error."""
    text = resources.files(__name__).joinpath(f"{template}.txt").read_text(encoding="utf-8")
    return _Text(text).substitute(values)
