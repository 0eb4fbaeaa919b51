"""The commands of a night, and its environments: the interpreter at hand, others built with pip."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from harness import __version__
from harness.engine.child import Child
from harness.errors import HarnessError, UsageError
from harness.nightly.state import Environment
from harness.records.environment import existing_env_name
from harness.records.files import replaced

INSTALLED, NEWEST, NIGHTLY = "installed", "newest", "nightly"

_RELEASE = re.compile(r"\d+(\.\d+)+([a-z0-9.]+)?")

_PROBE = """
import importlib.util, json, platform
from importlib import metadata
found = {d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"]}
names = {name.lower().replace("_", "-"): version for name, version in found.items()}
print(json.dumps({
    "python": platform.python_version(),
    "jax": names.get("jax", ""),
    "jaxlib": names.get("jaxlib", ""),
    "lacking": [m for m in ("asv_runner", "harness", "jax") if not importlib.util.find_spec(m)],
    "packages": sorted(f"{name}=={version}" for name, version in found.items()),
}))
"""


class Runner:
    """Starts commands in the project's folder, with their output in files."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd

    def run(
        self, command: Sequence[str], log: Path, variables: Mapping[str, str] | None = None
    ) -> int:
        """Run a command, append what it says to `log`, and return its exit code.

        One that something killed is run once more, because it goes on where it was: what ran out
        of memory may not do so again, and who kills a night and all that it has started may reach
        the command first, which must not be kept as the end of a step.

        Returns:
            128 + N where signal N killed it.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        there = {**os.environ, **(variables or {})}
        code = 0
        for _ in range(2):
            with (
                log.open("ab") as out,
                Child(command, there, cwd=self.cwd, log=out, kept=True) as child,
            ):
                code = child.wait()
            code = 128 - code if code < 0 else code
            if code <= 128 + signal.SIGINT:
                break
        return code

    def harness(self, command: str, *arguments: str, log: Path) -> int:
        """Run a command of this harness, and return its exit code."""
        return self.run([sys.executable, "-m", "harness", command, *arguments], log)


def last_line(log: Path) -> str:
    """Return the last line that says something, for a note."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


class EnvironmentFailed(HarnessError):
    """An environment could not be made; the night goes on without it."""


@dataclass(frozen=True)
class Recipe:
    """How environments are built."""

    folder: Path
    """Each is built in `folder/NAME`."""
    repository: Path
    """What is measured; it is installed as well, where it is a package."""
    requirements: tuple[str, ...] = ()
    """Installed besides, such as `jax[cuda13]`."""
    nightly_index: str = ""
    """The package index that holds JAX's nightly builds."""

    def python(self, name: str) -> Path:
        """Return the interpreter of an environment, built or not."""
        return Path(sys.executable) if name == INSTALLED else self.folder / name / "bin" / "python"


LEAST_PYTHON = 11

MINORS = 5
"""Pythons that are so many releases newer than this one are looked for."""

LEAST_JAX = (0, 10)
"""The first release of JAX that the harness works with, as in pyproject.toml."""


def parse(text: str) -> list[str]:
    """Return the environments that a comma-separated list names, each once."""
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in (INSTALLED, NEWEST, NIGHTLY) and not _RELEASE.fullmatch(name):
            raise UsageError(
                f"{name!r} is no environment: expected installed, newest, nightly, or a release of "
                "JAX such as 0.11.2; separate several with commas."
            )
        release = re.match(r"(\d+)\.(\d+)", name)
        if release and tuple(map(int, release.groups())) < LEAST_JAX:
            least = ".".join(map(str, LEAST_JAX))
            raise UsageError(f"--jax {name}: expected jax {least} or later, as the harness needs.")
    if not names:
        raise UsageError("--jax names no environment: expected a list such as installed,newest.")
    return names


def by_default(recipe: Recipe) -> list[str]:
    """Return what a night measures without being told: what the machine can have."""
    newest = [NEWEST] if _releases(sys.version_info.minor) else []
    return [INSTALLED, *newest, *([NIGHTLY] if recipe.nightly_index else [])]


def base(release: str) -> str:
    """Return the Python to build an environment with: one that can have a release of JAX.

    Of this one and those on PATH as `python3.N`: for "" the one that can have the newest JAX, this
    one where others can have no newer one. Where none can, pip has to say so.
    """
    own = sys.version_info.minor
    best, python = _known(_releases(own), release), sys.executable
    for minor in range(own + MINORS, LEAST_PYTHON - 1, -1):
        other = shutil.which(f"python3.{minor}") if minor != own else None
        known = _known(_releases(minor), release) if other else ()
        if other and known > best and not _run(other, "-c", "import ensurepip, venv").returncode:
            best, python = known, other
    return python


def _known(releases: Sequence[str], wanted: str) -> tuple[int, ...]:
    """Return the newest of some releases, or the one that is wanted, as numbers; () for none."""
    numbers = (release_numbers(one) for one in releases if wanted in ("", one))
    return max(numbers, default=())


def release_numbers(release: str) -> tuple[int, ...]:
    """Return a release as numbers, which sort."""
    return tuple(map(int, re.findall(r"\d+", release)))


@functools.cache
def _releases(minor: int) -> list[str]:
    """Return the releases of JAX that pip finds for Python 3.`minor`; [] if no index answers."""
    # Of jaxlib: a wheel of jax itself is there for any Python, those that it cannot run in as well.
    asked = ["--python-version", f"3.{minor}", "--only-binary=:all:"]
    said = _run(sys.executable, "-m", "pip", "index", "versions", "jaxlib", *asked).stdout
    found = re.search("^Available versions: (.+)", said, re.MULTILINE)
    return found[1].split(", ") if found else []


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def make(found: Environment, recipe: Recipe, runner: Runner, own: Path) -> str:
    """Build an environment unless it stands, and fill in what it holds; return a note.

    A version that was found earlier in the night is built again if it is gone: a night measures
    one release under one name from its beginning to its end.
    """
    held = _probe(recipe.python(found.name))
    built = found.name == INSTALLED
    if not built and (found.env == "" or not held or held["jax"] != found.versions["jax"]):
        _build(found, recipe, runner, own / f"environment-{found.name}.log")
        held = _probe(recipe.python(found.name))
    if not held or held["lacking"]:
        lacking = ", ".join(held["lacking"]) if held else "a Python that starts"
        raise EnvironmentFailed(f"The environment {found.name} lacks {lacking}.")
    found.versions = {name: held[name] for name in ("python", "jax", "jaxlib")}
    found.env = existing_env_name(".".join(held["python"].split(".")[:2]), held["jax"])
    freeze = "\n".join([f"# Python {held['python']}", *held["packages"]]) + "\n"
    with replaced(own / f"freeze-{found.name}.txt", own=True) as handle:
        handle.write(freeze)
    if found.name == NIGHTLY and "dev" not in held["jax"]:
        return f"the index had nothing newer than jax {held['jax']}"
    return f"Python {held['python']}, jax {held['jax']}, jaxlib {held['jaxlib']}"


def _build(found: Environment, recipe: Recipe, runner: Runner, log: Path) -> None:
    if found.name == NIGHTLY and not recipe.nightly_index:
        raise EnvironmentFailed(
            "No package index with nightly builds of JAX is known: name it with --nightly-index."
        )
    exact = found.versions.get("jax") or (found.name if _RELEASE.fullmatch(found.name) else "")
    jax = [f"jax=={exact}"] if exact else ["jax", "jaxlib"]
    pip = [str(recipe.python(found.name)), "-m", "pip", "install", "--upgrade"]
    pip += ["--disable-pip-version-check", "--no-input"]
    python = base("" if found.name == NIGHTLY else exact)
    commands = [[python, "-m", "venv", "--clear", str(recipe.folder / found.name)]]
    if found.name == NIGHTLY:
        # In two steps, so that pre-releases of other packages stay out.
        pre = ["--pre", "--extra-index-url", recipe.nightly_index]
        commands += [[*pip, *_packages(recipe), "jax"], [*pip, *pre, *jax]]
    else:
        commands += [[*pip, *_packages(recipe), *jax]]
    for command in commands:
        code = runner.run(command, log)
        if code:
            raise EnvironmentFailed(
                f"The environment {found.name} could not be built (exit code {code}): "
                f"{last_line(log)}"
            )


def _packages(recipe: Recipe) -> list[str]:
    pinned = [f"{name}=={metadata.version(name)}" for name in ("asv", "asv_runner")]
    here = [_harness(recipe.repository)]
    if any((recipe.repository / name).is_file() for name in ("pyproject.toml", "setup.py")):
        here.append(str(recipe.repository))
    return [*dict.fromkeys(here), *pinned, *recipe.requirements]


def _harness(repository: Path) -> str:
    """Return what pip is to install for this harness: the repository, or what is installed here."""
    if (repository / "harness" / "nightly").is_dir():
        return str(repository)
    source = Path(__file__).parents[2]
    if (source / "pyproject.toml").is_file():  # installed for editing
        return str(source)
    try:
        about = metadata.distribution("jax-harness").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        about = None
    origin = json.loads(about) if about else {}
    if "vcs_info" in origin:
        how = origin["vcs_info"]
        return f"jax-harness @ {how['vcs']}+{origin['url']}@{how['commit_id']}"
    if origin.get("url"):
        return f"jax-harness @ {origin['url']}"
    return f"jax-harness=={__version__}"


def _probe(python: Path) -> dict[str, Any]:
    """Return what an interpreter holds; {} if it does not start."""
    try:
        done = _run(str(python), "-c", _PROBE)
    except OSError:
        return {}
    found: dict[str, Any] = {} if done.returncode else json.loads(done.stdout.splitlines()[-1])
    return found
