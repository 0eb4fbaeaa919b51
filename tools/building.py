"""Build the source distribution and the wheel, and check them.

`python -m tools.building dist`, or `make dist`. They are made from what git tracks, in a
folder of their own, so that neither stray files nor the remains of an earlier build get in; the
wheel is built out of the source distribution. With `--repository ADDRESS`, where this project is
hosted, relative links of the README become absolute ones, because a package index shows the README
and does not have the files; and the address goes into the metadata.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import harness

ROOT = Path(__file__).parents[1]
MOST_BYTES = 1_100_000
"""The largest wheel that is accepted."""
LINK = re.compile(r"(!?\[[^\]]*\])\((?!\w+:|#)([^)\s]+)\)")
"""A Markdown link or image whose address is relative."""


class BuildError(Exception):
    """A distribution could not be built, or a check found something."""


def tracked(root: Path = ROOT, under: str = ".") -> list[str]:
    """Return the files below a folder that git tracks and that are there, relative to the root."""
    done = _run(["git", "ls-files", "-z", "--", under], root)
    return [name for name in done.stdout.split("\0") if name and (root / name).is_file()]


def build(destination: Path, repository: str = "", root: Path = ROOT) -> tuple[Path, Path]:
    """Build both distributions and return them: the source distribution, then the wheel.

    Args:
        destination: the folder that they are put into; distributions in it are removed.
        repository: the address of the project's repository, without a slash at the end, or "".
        root: the clone to build.

    Raises:
        BuildError: git or the build failed.
    """
    environment = dict(os.environ)
    # Files in the wheel bear the time of the commit: one commit gives one wheel, byte for byte.
    environment["SOURCE_DATE_EPOCH"] = _run(["git", "log", "-1", "--format=%ct"], root).stdout
    destination.mkdir(parents=True, exist_ok=True)
    for old in (*destination.glob("*.tar.gz"), *destination.glob("*.whl")):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "source"
        for name in tracked(root):
            (copied / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copied / name)
        if repository:
            _address(copied, repository)
        # With the build backend that is installed: constraints.txt locks it.
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir"]
        _run([*command, str(destination.resolve()), str(copied)], copied, environment)
    (source,), (wheel,) = destination.glob("*.tar.gz"), destination.glob("*.whl")
    return source, wheel


def check(source: Path, wheel: Path, root: Path = ROOT) -> None:
    """Check that the wheel holds the package, and both distributions with the standard tools.

    Raises:
        BuildError: a tool found something, the wheel lacks a file or has one too many, or is larger
            than :data:`MOST_BYTES`.
    """
    # check-wheel-contents, below, would only compare modules.
    differing = sorted(in_package(wheel) ^ set(tracked(root, "harness")))
    if differing:
        raise BuildError(
            f"{wheel.name} and what git tracks below harness/ differ in {', '.join(differing)}: "
            "see [tool.setuptools.package-data] in pyproject.toml."
        )
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        raise BuildError(f"{wheel.name} has {size:,} bytes, more than {MOST_BYTES:,}.")
    beside = Path(sys.executable).parent
    _run([beside / "validate-pyproject", "pyproject.toml"], root)
    _run([beside / "check-manifest", "--no-build-isolation"], root)
    _run([beside / "twine", "check", "--strict", source, wheel], root)
    _run([beside / "check-wheel-contents", wheel], root)


def in_package(wheel: Path) -> set[str]:
    """Return the files of a wheel without its metadata."""
    with zipfile.ZipFile(wheel) as opened:
        return {name for name in opened.namelist() if ".dist-info/" not in name}


def released(tag: str, root: Path = ROOT) -> None:
    """Check that a tag may be released.

    Raises:
        BuildError: it is not `v` and the version, or the changelog has no such release.
    """
    if tag != f"v{harness.__version__}":
        raise BuildError(
            f"The tag is {tag}, but harness.__version__ is {harness.__version__}: the tag has to "
            f"be v{harness.__version__}."
        )
    heading = latest((root / "CHANGELOG.md").read_text())
    if heading != harness.__version__:
        raise BuildError(
            f"The first heading in CHANGELOG.md is {heading!r}; to release, it has to be "
            f"{harness.__version__!r}."
        )


def latest(changelog: str) -> str:
    """Return the first heading of the second level in a changelog, or ""."""
    found = re.search(r"^## (.+)$", changelog, re.MULTILINE)
    return found[1].strip() if found else ""


def absolute(text: str, repository: str, revision: str) -> str:
    """Return Markdown whose relative links lead to a revision of the repository."""

    def replaced(found: re.Match[str]) -> str:
        kind = "raw" if found[1].startswith("!") else "blob"
        return f"{found[1]}({repository}/{kind}/{revision}/{found[2]})"

    return LINK.sub(replaced, text)


def _address(copied: Path, repository: str) -> None:
    readme, project = copied / "README.md", copied / "pyproject.toml"
    tag = f"v{harness.__version__}"
    readme.write_text(absolute(readme.read_text(), repository, tag))
    heading = "[project.urls]\n"
    urls = f'Repository = "{repository}"\nChangelog = "{repository}/blob/{tag}/CHANGELOG.md"\n'
    text = project.read_text()
    text = text if heading in text else f"{text}\n{heading}"
    project.write_text(text.replace(heading, heading + urls))


def _run(
    command: list[str | Path], folder: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise BuildError(f"{error.filename} is missing: pip install -e '.[dev]'") from error
    if done.returncode:
        words = " ".join(
            Path(command[0]).name if part is command[0] else str(part) for part in command
        )
        raise BuildError(f"{words} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


def main() -> None:
    """Build and check, and say what was made."""
    parser = argparse.ArgumentParser(prog="python -m tools.building", description=__doc__)
    parser.add_argument("destination", type=Path)
    parser.add_argument("--repository", default="", metavar="ADDRESS")
    parser.add_argument("--tag", default="", help="refuse if this is not the tag of the version")
    arguments = parser.parse_args()
    try:
        if arguments.tag:
            released(arguments.tag)
        made = build(arguments.destination, arguments.repository.rstrip("/"))
        check(*made)
    except BuildError as error:
        sys.exit(f"{parser.prog}: {error}")
    for file in made:
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
