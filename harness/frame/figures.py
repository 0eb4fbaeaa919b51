"""Figures: what can be drawn here, and how a chart becomes a file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from harness.errors import StoreError, UsageError

# Okabe and Ito's palette: told apart with any colour vision, and in print.
GREY, SKY, ORANGE, VERMILLION, GREEN = "#999999", "#56B4E9", "#E69F00", "#D55E00", "#009E73"


FONT = "DejaVu Sans, Verdana, sans-serif"
"""Of text in pictures. The room for it is measured when a picture is made, with the first of these;
the others are as wide, so that nothing is cut off where it is looked at."""


def check(output: Path) -> None:
    """Raise :class:`UsageError` if no figure could be drawn into `output`."""
    if output.suffix not in (".svg", ".png", ".html"):
        raise UsageError(f"--figure {output}: expected a name that ends in .svg, .png or .html.")
    for module, package in (("altair", "altair"), ("vl_convert", "vl-convert-python")):
        if importlib.util.find_spec(module) is None:
            raise UsageError(
                f"--figure needs {package}, which is not installed: pip install "
                "'jax-harness[figures]'."
            )


def save(chart: Any, output: Path) -> None:
    """Write an altair chart into a `.svg`, `.png` or `.html` file.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        chart = chart.copy(deep=False)
        chart.config = {**(chart.to_dict().get("config") or {}), "font": FONT}
        if output.suffix == ".html":
            chart.save(str(output), inline=True)
        else:
            chart.save(str(output), scale_factor=2 if output.suffix == ".png" else 1)
    except OSError as error:
        raise StoreError(
            f"{output} cannot be written: {error.strerror or error}. Choose another place with "
            "--figure."
        ) from error
