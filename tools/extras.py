"""Resolve every extra on every supported Python: `make extras`. It needs uv and a package index.

Nothing is installed. Only wheels count, so that nobody needs a compiler. Exits with 1 if an extra
cannot be resolved, or if an extra that is not for GPUs or TPUs asks for their packages.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
ACCELERATOR = re.compile(r"^(nvidia-|cupy|libtpu|jax-(cuda|rocm))", re.IGNORECASE)
"""The name of a package that only serves a GPU or a TPU."""
FOR_ACCELERATORS = {"dev", "gpu", "targets", "tpu"}


def declared() -> dict[str, list[str]]:
    """Return the extras of pyproject.toml and what each asks for."""
    extras: dict[str, list[str]] = _project()["optional-dependencies"]
    return extras


def supported() -> list[str]:
    """Return the Pythons that the classifiers of pyproject.toml name, such as `3.11`."""
    prefix = "Programming Language :: Python :: 3."
    found = [each for each in _project()["classifiers"] if each.startswith(prefix)]
    return [each.rpartition(" ")[2] for each in found]


def accelerator_packages(requirements: list[str]) -> list[str]:
    """Return those of some requirements that only serve a GPU or a TPU."""
    return [each for each in requirements if ACCELERATOR.match(each)]


def resolve(python: str, extra: str) -> tuple[list[str], str]:
    """Return what pip would install for an extra ("" is none), or why it cannot: one of the two."""
    command = [*(sys.executable, "-m", "uv", "pip", "compile", "--quiet"), str(PROJECT)]
    command += ["--no-header", "--no-annotate", "--no-build", "--python-version", python]
    command += ["--extra", extra] if extra else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return [], done.stderr.strip()
    return done.stdout.split("\n")[:-1], ""


def main() -> None:
    """Resolve all, and print a line for each."""
    failed = False
    for python in supported():
        for extra in ("", *declared()):
            found, problem = resolve(python, extra)
            unasked = [] if extra in FOR_ACCELERATORS else accelerator_packages(found)
            failed = failed or bool(problem or unasked)
            said = problem or f"{len(found)} packages"
            said += f", among them {', '.join(unasked)}" if unasked else ""
            print(f"Python {python}  {extra or '(no extra)':12} {said}", flush=True)
    sys.exit(failed)


def _project() -> dict[str, Any]:
    return tomllib.loads(PROJECT.read_text())["project"]


if __name__ == "__main__":
    main()
