"""An environment that holds a wheel and what it asks for, and a project outside the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

MODELS = '''\
"""A user's own code."""

import jax


def predict(w, b, x):
    """A dense layer with ReLU."""
    return jax.nn.relu(x @ w + b)
'''


class Installation:
    """A new virtual environment with a wheel, and commands in it that see nothing of ours."""

    def __init__(self, folder: Path, wheel: Path):
        """Make the environment in `folder` and install the wheel, at the versions that are here."""
        self.bin = folder / "venv" / "bin"
        self.project = folder / "project"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PYTEST", "JAX_", "XLA_", "VIRTUAL_ENV"))
        }
        self.environment = {
            **kept,
            "HOME": str(folder),
            "PATH": os.pathsep.join((str(self.bin), os.environ["PATH"])),
            "JAX_PLATFORMS": "cpu",
            **{
                f"GIT_{who}_{what}": "t@example.com"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        self.project.mkdir(parents=True)
        base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
        self.run(base if base.exists() else sys.executable, "-m", "venv", self.bin.parent)
        self.constraints = folder / "constraints.txt"
        self.constraints.write_text("".join(sorted(_here())))
        self.install(str(wheel))

    def install(self, *what: str) -> None:
        """Install into the environment. Python compiles what is used, not the installer all."""
        limits = ["--quiet", "--constraint", self.constraints, *what]
        # The settings of the installers and their caches are those of whoever runs the tests.
        home = str(Path.home())
        python = self.bin / "python"
        try:  # a tenth of pip's time
            uv = [sys.executable, "-m", "uv", "pip", "install", "--python", python]
            self.run(*uv, *limits, HOME=home)
        except AssertionError:  # an index that only pip can reach
            pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
            self.run(*pip, *limits, HOME=home)

    def packages(self) -> dict[str, str]:
        """Return what is installed: normalised names and versions."""
        listed = self.run("python", "-m", "pip", "list", "--format=freeze").stdout.split()
        found = (line.partition("==")[::2] for line in listed)
        return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}

    def run(
        self, *command: str | Path, code: int = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the project's folder; any other exit code than `code` is an error."""
        program = self.bin / str(command[0])
        words = [str(program if program.exists() else command[0]), *map(str, command[1:])]
        done = subprocess.run(
            words,
            cwd=self.project,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        said = f"{words}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        assert done.returncode == code, said
        return done

    def add_models(self) -> None:
        """Make the project a git repository whose package can be imported."""
        package = self.project / "src" / "mypackage"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "models.py").write_text(MODELS)
        # What `pip install -e .` leaves behind, without needing the user's build backend.
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = Path(self.run("python", "-c", where).stdout.strip())
        (site / "mypackage.pth").write_text(f"{package.parent}\n")
        self.run("git", "init", "--quiet")


def _here() -> list[str]:
    found: dict[str, str] = {}
    for each in metadata.distributions():
        found.setdefault(each.metadata["Name"], each.version)
    # pip and setuptools are the new environment's own.
    own = {"pip", "setuptools", "jax-harness"}
    return [f"{name}=={version}\n" for name, version in found.items() if name not in own]
