"""One side of a live comparison: which code, interpreter, variables, target and scenario."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import harness
from harness import targets
from harness.engine.child import Child
from harness.errors import HarnessError, UsageError
from harness.records.git import top_of, worktree
from harness.stages.scenarios import registry as scenarios

PARTS = """. for the working tree as it is, a commit or tag, python=PATH, set:NAME=VALUE, \
target=NAME, scenario=NAME, or several joined by commas, such as v1.0,set:XLA_FLAGS=--xla_flag=1"""

_PROBE = "import harness.engine.sweep, rich, typer, jax"
_PREFIXES = ("python=", "set:", "target=", "scenario=")


@dataclass(frozen=True)
class Arm:
    """What one side of a live comparison is measured of, and in."""

    text: str
    revision: str = ""
    """A commit, whose benchmarks and packages are measured; "" for the working tree."""
    python: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    target: str = ""
    scenario: str = ""


@dataclass(frozen=True)
class Place:
    """Where an arm's processes run."""

    arm: Arm
    folder: Path
    benchmarks: Path
    python: str
    environment: dict[str, str]


def parse(text: str, python: str) -> Arm:
    """Return the arm that `text` describes; `python` is the interpreter where it names none.

    A comma within the value of a `set:` stays there, unless what follows begins another part; so a
    commit stands first.

    Raises:
        UsageError: a part is empty, given twice or unknown.
    """
    parts: list[str] = []
    for piece in text.split(","):
        if parts and parts[-1].startswith("set:") and not piece.startswith(_PREFIXES):
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    given: dict[str, str] = {}
    variables: dict[str, str] = {}
    for part in parts:
        kind, value = _split(part, text)
        if kind == "set":
            name, equals, content = value.partition("=")
            if not equals or not name.strip():
                raise UsageError(f"{part!r} in {text!r}: expected set:NAME=VALUE.")
            variables[name.strip()] = content
        elif kind in given:
            raise UsageError(f"{text!r} names two of a kind: {given[kind]!r} and {value!r}.")
        else:
            given[kind] = value
    if "target" in given:
        targets.find(given["target"])
    if "scenario" in given:
        scenarios.find(given["scenario"])
    revision = given.get("revision", ".")
    return Arm(
        text,
        "" if revision == "." else revision,
        _interpreter(given["python"]) if "python" in given else python,
        variables,
        given.get("target", ""),
        given.get("scenario", ""),
    )


def _split(part: str, text: str) -> tuple[str, str]:
    for prefix in _PREFIXES:
        if part.startswith(prefix):
            kind, value = prefix.rstrip(":="), part.removeprefix(prefix)
            break
    else:
        kind, value = "revision", part
    if not value or value.startswith("-"):
        raise UsageError(f"{text!r} is no arm of a live comparison: expected {PARTS}.")
    return kind, value


def _interpreter(given: str) -> str:
    path = Path(given).expanduser().absolute()  # a link into a virtual environment is not followed
    if path.is_dir():
        path = path / "bin" / "python"
    if not path.is_file() or not os.access(path, os.X_OK):
        raise UsageError(
            f"python={given}: there is no interpreter at {path}. Name one, or the folder of a "
            "virtual environment."
        )
    return str(path)


def differing_columns(a: Arm, b: Arm) -> tuple[str, ...]:
    """Return the columns of the frame in which two arms differ by intention."""
    return tuple(name for name in ("target", "scenario") if getattr(a, name) != getattr(b, name))


@contextlib.contextmanager
def prepared(arm: Arm, benchmarks: Path, instrument: Path) -> Iterator[Place]:
    """Yield where an arm's processes run; a commit is in a temporary worktree for so long.

    Args:
        arm: the arm.
        benchmarks: the folder of workloads in the working tree.
        instrument: the folder that :func:`link_instrument` made.

    Raises:
        UsageError: there is no such commit, or it has no such folder.
        HarnessError: the arm's interpreter cannot run the harness.
    """
    benchmarks = benchmarks.resolve()
    if not arm.revision:
        if not benchmarks.is_dir():
            raise UsageError(f"There is no folder of benchmarks at {benchmarks}.")
        top = top_of(benchmarks) or benchmarks.parent
        yield _place(arm, top, Path.cwd(), benchmarks, instrument)
        return
    with worktree(benchmarks.parent, arm.revision) as (top, tree, commit):
        there = tree / benchmarks.relative_to(top)
        if not there.is_dir():
            raise UsageError(
                f"There is no folder {benchmarks.relative_to(top)} at {arm.revision!r} "
                f"({commit[:8]})."
            )
        yield _place(arm, tree, tree, there, instrument)


def link_instrument(folder: Path) -> Path:
    """Make a folder that holds this harness and nothing else, for every arm to measure with."""
    (folder / "harness").symlink_to(Path(harness.__file__).resolve().parent)
    return folder


def _place(arm: Arm, top: Path, folder: Path, benchmarks: Path, instrument: Path) -> Place:
    environment = {**os.environ, **arm.variables}
    # The arm's own packages come before what is installed; the harness is the same in both arms.
    paths = [instrument, top / "src", top, *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    environment["PYTHONSAFEPATH"] = "1"  # the folder a process runs in holds no harness for it
    place = Place(arm, folder, benchmarks, arm.python, environment)
    if arm.python != sys.executable:
        _check(place)
    return place


def _check(place: Place) -> None:
    try:
        with Child([place.python, "-c", _PROBE], place.environment, cwd=place.folder) as child:
            code = child.wait()
    except OSError as error:
        raise HarnessError(f"{place.python} cannot be run: {error}.") from None
    if code:
        last = child.output[-1] if child.output else child.how
        raise HarnessError(
            f"{place.python} cannot run the harness: {last}. Install JAX and what the harness "
            "needs there."
        )
