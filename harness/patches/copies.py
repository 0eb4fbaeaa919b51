"""Copies of a program's folder, and what a run of one gives that can be seen."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import UsageError
from harness.jaxhooks import observe, programs
from harness.jaxhooks.session import SAMPLE_VARIABLE
from harness.profiles.recorded import Recorded, read

MOST_BYTES = 500 * 10**6

_LEFT_OUT = ("venv", "node_modules", "__pycache__")
_ROOTS = (".git", "pyproject.toml", "setup.py")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_ERROR = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b")

TEXT_TOLERANCE = 1e-5
"""How far numbers of a printed text may differ, as part of the number."""

ARRAY_TOLERANCE = 64
"""How far values may differ: so often the spacing of their dtype at the largest of them."""


def left_out(names: Iterable[str]) -> set[str]:
    """Return the names that are not copied: hidden ones, environments, and what is compiled."""
    return {one for one in names if one.startswith(".") or one in _LEFT_OUT}


def root_of(folder: Path) -> Path:
    """Return the project that a folder is in, or the folder itself."""
    home = Path.home()
    for one in (folder, *folder.parents):
        if one in (home, Path(one.anchor)):
            break
        if any((one / name).exists() for name in _ROOTS):
            return one
    return folder


@dataclass(frozen=True)
class CopiedProgram:
    """A command, the folder that it runs in, and the project that is copied."""

    command: tuple[str, ...]
    cwd: Path
    root: Path
    exit_code: int

    def check_size(self) -> None:
        """Refuse a project that is too large to copy several times."""
        size = 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = {*folders} - left_out(folders)
            for name in files:
                path = os.path.join(folder, name)
                size += os.lstat(path).st_size
            if size > MOST_BYTES:
                raise UsageError(
                    f"{self.root} is larger than {MOST_BYTES // 10**6} MB, and would be copied for "
                    "each run. Profile the program in a folder that holds its files alone."
                )


@dataclass(frozen=True)
class Observed:
    """What was seen of a run.

    Attributes:
        failed: The error that ended it otherwise than the program ends; empty where none did.
        output: What it printed, without the place of the copy.
        files: What it wrote below the copy, by path.
        results: What its own jitted functions returned, process by process.
    """

    profile: Recorded
    failed: str = ""
    output: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    results: Sequence[Any] = ()


def run(program: CopiedProgram, changed: Mapping[Path, str], scratch: Path) -> Observed:
    """Run a copy of the program, with some files' texts changed, and return what was seen.

    Args:
        program: What runs.
        changed: By the path of the original.
        scratch: A folder that does not exist yet.
    """
    profile, results = scratch / "profile", scratch / "results"
    copy = scratch / "copy" / program.root.name  # pytest imports a package by its folder's name
    for folder in (profile, results):
        folder.mkdir(parents=True)
    shutil.copytree(program.root, copy, symlinks=True, ignore=lambda _, names: left_out(names))
    for path, text in changed.items():
        (copy / path.relative_to(program.root)).write_text(text, encoding="utf-8")
    before = _files(copy)
    words = [_in_copy(word, program.root, copy) for word in program.command]
    done = subprocess.run(
        words,
        cwd=copy / program.cwd.relative_to(program.root),
        env=_environment(program.root, copy, profile, results),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    recorded = read(profile)
    if done.returncode != program.exit_code:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        errors = [line for line in lines if _ERROR.match(line)]
        return Observed(recorded, failed=(errors or lines)[-1].strip())
    after = _files(copy)
    written = {
        name: (copy / name).read_bytes()
        for name, state in after.items()
        if before.get(name) != state
    }
    output = done.stdout.replace(str(copy), ".")
    return Observed(recorded, "", output, written, list(_results(results)))


def _in_copy(word: str, root: Path, copy: Path) -> str:
    path = Path(word)
    if path.is_absolute() and path.is_relative_to(root):
        there = copy / path.relative_to(root)
        return str(there) if there.exists() else word
    return word


def _environment(root: Path, copy: Path, profile: Path, results: Path) -> dict[str, str]:
    places = [os.environ.get("PYTHONPATH", "")]
    if any(
        (root / name).exists() for name in _ROOTS[1:]
    ):  # else an installed one would be imported
        places = [str(copy), str(copy / "src"), *places]
    variables = {
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
        "HARNESS_PROFILE": str(profile.resolve()),
        "PYTHONDONTWRITEBYTECODE": "1",
        SAMPLE_VARIABLE: "0",
        observe.VARIABLE: observe.asked(str(results.resolve()), str(copy.resolve())),
    }
    return programs.environment(os.environ, **variables)


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    states = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and not left_out(name.parts):
            status = path.stat()
            states[name.as_posix()] = (status.st_mtime_ns, status.st_size)
    return states


def _results(folder: Path) -> Iterator[Any]:
    for path in sorted(folder.glob("*.npy"), key=lambda one: one.stat().st_ctime_ns):
        with path.open("rb") as file:
            size = path.stat().st_size
            while file.tell() < size:
                try:
                    yield np.load(file, allow_pickle=False)
                except ValueError:  # the process was killed while it wrote
                    return


# --- comparison -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agreed:
    """What two runs of the same program have in common, which a third has to give as well."""

    output: str | None
    files: Mapping[str, bytes]
    results: Sequence[Any] | None

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be compared."""
        return not self.output and not self.files and not self.results


def agreed(one: Observed, other: Observed) -> Agreed:
    """Return what two runs agree on."""
    files = {name: data for name, data in one.files.items() if other.files.get(name) == data}
    same = len(one.results) == len(other.results) and all(
        map(_is_equal, one.results, other.results)
    )
    return Agreed(
        one.output if one.output == other.output else None, files, one.results if same else None
    )


def difference(wanted: Agreed, seen: Observed) -> str:
    """Return what differs, `output`, `results` or a file's name; empty where nothing does."""
    if wanted.output is not None and not is_same_text(wanted.output, seen.output):
        return "output"
    for name, data in wanted.files.items():
        other = seen.files.get(name)
        if other is None or (data != other and not _is_same_file(data, other)):
            return name
    if wanted.results is not None:
        if len(wanted.results) != len(seen.results):
            return "results"
        if not all(map(_is_close, wanted.results, seen.results)):
            return "results"
    return ""


def is_same_text(one: str, other: str) -> bool:
    """Whether texts are equal, but for the last digits of numbers with a point or exponent."""
    if one == other:
        return True
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    for a, b in zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True):
        if a != b:
            if not any(mark in a + b for mark in ".eE"):
                return False
            if abs(float(a) - float(b)) > TEXT_TOLERANCE * max(abs(float(a)), abs(float(b))):
                return False
    return True


def _is_same_file(one: bytes, other: bytes) -> bool:
    try:
        return is_same_text(one.decode(), other.decode())
    except UnicodeDecodeError:
        return False


def _is_equal(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def _is_close(one: Any, other: Any) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    finite = np.abs(one[np.isfinite(one)])
    largest = finite.max() if finite.size else 0.0
    within = ARRAY_TOLERANCE * np.finfo(one.dtype).eps * largest
    return bool(np.allclose(one, other, rtol=0, atol=within, equal_nan=True))
