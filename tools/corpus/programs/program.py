"""A function of somebody else's, and how its own project makes its arguments."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "HARNESS_CORPUS"
"""The variable that names the folder with the checkouts."""

SOURCES = {
    "npbench": "spcl/npbench",
    "pyhpc-benchmarks": "dionhaefner/pyhpc-benchmarks",
    "jax-benchmarks": "jax-ml/jax",
}
"""What has to be cloned into the folder, by the name of its checkout: repositories on GitHub."""


@dataclass(frozen=True)
class Program:
    """What is measured, as its project calls it.

    Attributes:
        function: the object itself: jitted by its project, or a plain function.
        inputs: its positional arguments for a size, made as its project makes them.
        sizes: the names of its sizes.
        x64: whether its project enables 64-bit types.
        donates: whether a call takes its arguments' buffers away.
    """

    function: Callable[..., Any]
    inputs: Callable[[str], tuple[Any, ...]]
    sizes: Sequence[str] = ("S",)
    x64: bool = False
    donates: bool = False


def checkout(name: str, inside: str) -> Path:
    """Return the path `inside` of a checkout, and put it where Python looks for modules.

    Raises:
        FileNotFoundError: it is not there; the text says what to clone.
    """
    given = os.environ.get(FOLDER, "")
    path = Path(given, name, inside)
    if not given or not path.is_dir():
        found = f"there is no {path}" if given else f"{FOLDER} is not set"
        raise FileNotFoundError(
            f"{found}. Name a folder with a checkout of github.com/{SOURCES[name]} in it: "
            f"git clone --depth 1 https://github.com/{SOURCES[name]} FOLDER/{name}"
        )
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))
    return path
