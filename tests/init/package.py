"""A small project of a user's own, with the commands of an installed harness and asv at hand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import harness
from tests import forks

MODELS = '''\
import jax


def predict(w, b, x):
    """A dense layer with ReLU."""
    return jax.nn.relu(x @ w + b)


def line(ab, x, y):
    return ((ab[0] * x + ab[1] - y) ** 2).sum()


def total(x):
    return x.sum()


def repeated(x, times):
    return x if times > 3 else 2 * x


times_of = jax.jit(lambda x, times=1: x if times else 2 * x, static_argnums=1)

NUMBER = 3
'''

FEW = {"HARNESS_FIRST_CALLS": "0"}
"""Variables of a sweep that is only to show that it runs."""

PREDICT = (
    "--function mypackage.models:predict "
    '--arg "float32[784,256]" --arg "float32[256]" --arg "float32[64,784]"'
)


class Package:
    """A package in `folder`; git and home are those of a fresh user."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "mypackage",
        layout: str = "src",
        at: str = "",
        models: str = MODELS,
        git: bool = True,
    ) -> None:
        self.top = folder / "repository"
        self.folder = self.top / at
        self.bin = folder / "bin"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.bin.mkdir()
        python = shlex.join([sys.executable, "-P", forks.__file__])
        for command in ("harness", "asv"):  # as pip would install them
            script = self.bin / command
            script.write_text(f'#!/bin/sh\nexec {python} {command} "$@"\n')
            script.chmod(0o755)
        place = self.folder / ("src" if layout == "src" else "")
        package = name.replace("-", "_")
        self.write(place / package / "__init__.py", "")
        self.write(place / package / "models.py", models)
        self.write(
            self.folder / "pyproject.toml",
            f'[project]\nname = "{name}"\nversion = "1"\ndependencies = ["jax"]\n',
        )
        self.path = os.pathsep.join([str(Path(harness.__file__).parents[1]), str(place)])
        if git:
            self.run("git init --quiet --initial-branch=trunk .", cwd=self.top)
            self.run("git add . && git commit --quiet -m 'A package'", cwd=self.top)

    @staticmethod
    def write(file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def environment(self, **variables: str) -> dict[str, str]:
        """Return what the commands of this user see, with `variables` on top."""
        steering = ("HARNESS_", "GIT_", "ASV_", "JAX_", "XLA_", "PYTHON")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(steering)}
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": f"{self.bin}{os.pathsep}{kept['PATH']}",
            # Stands for `pip install -e .`, which would need an index.
            "PYTHONPATH": self.path,
            "ASV_PYTHONPATH": self.path,
            "JAX_PLATFORMS": "cpu",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{
                f"GIT_{who}_{what}": value
                for who in ("AUTHOR", "COMMITTER")
                for what, value in (("NAME", "tester"), ("EMAIL", "tester@example.com"))
            },
            **variables,
        }

    def run(self, command: str, *, code: int = 0, cwd: Path | None = None, **variables: str) -> str:
        """Run a line of shell and return what it said; its exit code must be `code`."""
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=cwd or self.folder,
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{command} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def step(self, workflow: str, name: str, code: int = 0, **variables: str) -> str:
        """Run the script of a step of a workflow, and return what it said."""
        (found,) = re.findall(
            rf"- name: {re.escape(name)}\n(?s:.*?)        run: \|\n((?:          .*\n)+)",
            (self.top / ".github/workflows" / workflow).read_text(),
        )
        return self.run(textwrap.dedent(found), code=code, **variables)

    def harness(
        self, words: str, *, code: int = 0, cwd: Path | None = None, **variables: str
    ) -> str:
        """Run `harness WORDS` and return what it said; its exit code must be `code`."""
        done = forks.harness(
            *shlex.split(words),
            cwd=cwd or self.folder,
            environment=self.environment(**variables),
        )
        said = done.stdout + done.stderr
        assert done.returncode == code, f"harness {words}: {done.returncode}:\n{said}"
        return said

    def init(self, arguments: str = "", **options: Any) -> str:
        """Run `harness init` and return what it said."""
        return self.harness(f"init {arguments}", **options)

    def text(self, file: str) -> str:
        return (self.folder / file).read_text(encoding="utf-8")

    def files(self) -> dict[str, tuple[str, int]]:
        """Return every file's text and time of change, but git's own."""
        return {
            str(file.relative_to(self.top)): (file.read_text(), file.stat().st_mtime_ns)
            for file in sorted(self.top.rglob("*"))
            if file.is_file() and ".git" not in file.relative_to(self.top).parts
        }
