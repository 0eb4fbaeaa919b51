"""One side of a live comparison: which code, interpreter, variables, target and scenario."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import targets
from harness.errors import HarnessError, UsageError
from harness.measure.child import Child
from harness.measure.process import packages_of
from harness.records.git import top_of, worktree
from harness.stages.scenarios import registry as scenarios

PARTS = """. for the working tree as it is, a commit or tag, python=PATH, set:NAME=VALUE, \
target=NAME, scenario=NAME, or several joined by commas, such as v1.0,set:XLA_FLAGS=--xla_flag=1"""

_PROBE = "import harness.measure.sweep, jax"
_PREFIXES = ("python=", "set:", "target=", "scenario=")


@dataclass(frozen=True)
class LiveArm:
    """What one side of a live comparison is measured of, and in."""

    text: str
    revision: str = ""
    """A commit, whose benchmarks and packages are measured; "" for the working tree."""
    python: str = sys.executable
    variables: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    scenario: str = ""


@dataclass(frozen=True)
class PreparedArm:
    """Where an arm's processes run."""

    arm: LiveArm
    folder: Path
    tree: Path
    """The top of the code that is measured."""
    benchmarks: Path
    environment: dict[str, str]


def parse(text: str) -> LiveArm:
    """Return the arm that `text` describes.

    A comma within the value of a `set:` stays there, unless what follows begins another part; so a
    commit stands first.
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
        prefix = next((one for one in _PREFIXES if part.startswith(one)), "")
        kind, value = prefix.rstrip(":=") or "revision", part.removeprefix(prefix)
        if not value or value.startswith("-"):
            raise UsageError(f"{text!r} is no arm of a live comparison: expected {PARTS}.")
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
    if "python" in given:
        # A link into a virtual environment is not followed.
        path = Path(given["python"]).expanduser().absolute()
        path = path / "bin" / "python" if path.is_dir() else path
        if not path.is_file() or not os.access(path, os.X_OK):
            raise UsageError(
                f"python={given['python']}: there is no interpreter at {path}. Name one, or the "
                "folder of a virtual environment."
            )
        given["python"] = str(path)
    if given.get("revision") == ".":
        del given["revision"]
    return LiveArm(text, variables=variables, **given)


def differing_columns(a: LiveArm, b: LiveArm) -> list[str]:
    """Return the columns of the frame in which two arms differ by intention."""
    return [name for name in ("target", "scenario") if getattr(a, name) != getattr(b, name)]


@contextlib.contextmanager
def prepared(arm: LiveArm, benchmarks: Path) -> Iterator[PreparedArm]:
    """Yield where an arm's processes run; a commit is in a temporary worktree for so long.

    `benchmarks` is the folder of workloads in the working tree.

    Raises:
        UsageError: there is no such commit, or it has no such folder.
        HarnessError: the arm's interpreter cannot run the harness.
    """
    benchmarks = benchmarks.resolve()
    with contextlib.ExitStack() as stack:
        if arm.revision:
            made = worktree(benchmarks.parent, arm.revision)
            top, tree, commit = stack.enter_context(made)
            own, folder = tree / benchmarks.relative_to(top), tree
            if not own.is_dir():
                raise UsageError(
                    f"There is no folder {benchmarks.relative_to(top)} at {arm.revision!r} "
                    f"({commit[:8]})."
                )
        else:
            own, folder = benchmarks, Path.cwd()
            if not own.is_dir():
                raise UsageError(f"There is no folder of benchmarks at {benchmarks}.")
            tree = top_of(benchmarks) or benchmarks.parent
        environment = {**os.environ, **arm.variables}
        environment |= stack.enter_context(packages_of(own.parent, tree, environment))
        place = PreparedArm(arm, folder, tree, own, environment)
        if arm.python != sys.executable:
            _check(place)
        yield place


def _check(place: PreparedArm) -> None:
    """Raise unless the arm's interpreter can run the harness."""
    python = place.arm.python
    try:
        with Child([python, "-c", _PROBE], place.environment, cwd=place.folder) as child:
            code = child.wait()
    except OSError as error:
        raise HarnessError(f"{python} cannot be run: {error}.") from None
    if code:
        last = child.output[-1] if child.output else child.how
        raise HarnessError(
            f"{python} cannot run the harness: {last}. Install JAX and what the harness needs "
            "there."
        )
