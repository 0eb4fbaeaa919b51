"""What `harness profile` says of one program where JAX, the harness and the program are installed
otherwise: the same in each.

    python -m tools.profile_layouts [--python PYTHON]

Every layout is made for real, by uv, with the JAX of this environment (or of PYTHON's). Printed is
each layout with what differs from the first; the exit code is the number of those that differ.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipapp
from pathlib import Path
from typing import Any

import pandas as pd

import harness
from tools.performance.command import ROOT

UV = Path(sys.executable).with_name("uv")

LIBRARY = """
import jax
double = jax.jit(lambda x: x * 2)
"""

PROGRAM = """
import functools
import jax, jax.numpy as jnp
import layoutlib

@functools.partial(jax.jit, static_argnames="steps")
def relax(x, steps):
    return jax.lax.fori_loop(0, steps, lambda _, y: y * 0.5, x)

def main():
    x = jnp.ones(3)
    for steps in (1, 2):
        relax(x, steps)
    norm = jax.jit(jnp.linalg.norm)
    norm(x), norm(jnp.ones(4))
    layoutlib.double(x), layoutlib.double(jnp.ones(4, jnp.int32))

if __name__ == "__main__":
    main()
"""

COLUMNS = ["function", "origin", "cause", "argument", "line"]


def run(*words: str | Path, **options: Any) -> str:
    """Run a command and return what it says, or end with that where it fails."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def uv(*words: str | Path, **variables: str) -> None:
    run(UV, *words, env={**os.environ, **variables})


class Place:
    """A folder with an environment that has JAX and a library, the program, and who profiles it."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        environment = folder / "env"
        uv("venv", "--python", python, environment)
        self.python = environment / "bin" / "python"
        asked = "import jax, jaxlib; print(jax.__version__, jaxlib.__version__)"
        self.jax, jaxlib = run(python, "-c", asked).split()
        uv("pip", "install", "--python", self.python, f"jax=={self.jax}", f"jaxlib=={jaxlib}")
        (self.packages,) = (environment / "lib").glob("python3*/site-packages")
        (self.packages / "layoutlib.py").write_text(LIBRARY)
        about = self.packages / "layoutlib-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: layoutlib\nVersion: 1.0\n")
        (about / "RECORD").write_text("layoutlib.py,,\nlayoutlib-1.0.dist-info/METADATA,,\n")
        self.program = folder / "train.py"
        self.program.write_text(PROGRAM)
        self.harness: list[str | Path] = [sys.executable, "-m", "harness"]
        self.variables: dict[str, str] = {}

    def builds(self) -> pd.DataFrame:
        """Return what a profile says of the program."""
        out = self.folder / "out"
        out.mkdir()
        command = [*self.harness, "profile", "-o", out / "p", "--", self.python, self.program]
        run(*command, cwd=self.folder, env={**os.environ, **self.variables})
        builds = harness.load_profile(out / "p").frame("builds")
        builds["line"] = builds["call_site"].str.rpartition(":")[2]
        return builds[COLUMNS]

    def move(self, to: Path, link: bool = False, metadata: bool = True) -> None:
        """Put JAX and jaxlib elsewhere, on the path or linked to."""
        to.mkdir(parents=True)
        for name in ("jax", "jaxlib"):
            shutil.move(self.packages / name, to / name)
            if link:
                (self.packages / name).symlink_to(to / name)
            if not metadata:
                for about in self.packages.glob(f"{name}-*.dist-info"):
                    shutil.rmtree(about)
        if not link:
            (self.packages / "moved.pth").write_text(f"{to}\n")


def here(place: Place) -> None:
    """Profiled by a harness of another environment, as with pipx."""


def tool(place: Place) -> None:
    """The harness is installed by `uv tool install`."""
    bin = place.folder / "bin"
    folders = {"UV_TOOL_DIR": str(place.folder / "tools"), "UV_TOOL_BIN_DIR": str(bin)}
    uv("tool", "install", "--python", sys.executable, ROOT, **folders)
    place.harness = [bin / "harness"]


def beside(place: Place) -> None:
    """The harness is installed into the program's environment."""
    uv("pip", "install", "--python", place.python, ROOT)
    place.harness = [place.python, "-m", "harness"]


def debian(place: Place) -> None:
    """JAX is in `dist-packages`."""
    place.move(place.packages.parent / "dist-packages")


def checkout(place: Place) -> None:
    """JAX is an editable checkout."""
    place.move(place.folder / "src" / "jax-checkout")


def tree(place: Place) -> None:
    """JAX is in the tree of a build system, without metadata."""
    place.move(place.folder / "bazel-out" / "runfiles", metadata=False)


def linked(place: Place) -> None:
    """JAX, and the whole environment, are links."""
    place.move(place.folder / "store", link=True)
    link = place.folder / "linked"
    link.symlink_to(place.folder / "env")
    place.python = link / "bin" / "python"


def zipped(place: Place) -> None:
    """The program is a zip file."""
    source = place.folder / "zip"
    source.mkdir()
    place.program.rename(source / "__main__.py")
    place.program = place.folder / "train.pyz"
    zipapp.create_archive(source, place.program)


def contained(place: Place) -> None:
    """As in a container: nothing but the profile can be written, and there is no home."""
    run("chmod", "-R", "a-w", place.folder / "env", place.program)
    place.variables = {"HOME": "/nonexistent"}
    if os.geteuid() == 0:  # who else would be let through
        place.harness = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *place.harness]


LAYOUTS = (here, tool, beside, debian, checkout, tree, linked, zipped, contained)


def main() -> None:
    """Print a line a layout, and what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_args()
    found: list[pd.DataFrame] = []
    for layout in LAYOUTS:
        with tempfile.TemporaryDirectory(prefix="harness-layout-") as scratch:
            folder = Path(scratch) / layout.__name__
            folder.mkdir()
            place = Place(folder, given.python)
            layout(place)
            found.append(place.builds())
        if len(found) == 1:
            print(f"JAX {place.jax}\n{found[0].to_string()}")
        same = found[-1].equals(found[0])
        print(f"{'same' if same else 'DIFFERS'}: {layout.__doc__}", flush=True)
        if not same:
            print(found[-1].to_string())
    sys.exit(sum(not builds.equals(found[0]) for builds in found))


if __name__ == "__main__":
    main()
