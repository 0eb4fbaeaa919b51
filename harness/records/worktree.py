"""A folder as it was at another commit, for as long as it is looked at."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness.declare.location import Source
from harness.errors import HarnessError, UsageError
from harness.records.environment import commit_of


@contextmanager
def checked_out(source: Source, revision: str) -> Iterator[tuple[Source, str]]:
    """Yield where a workload is in a temporary worktree of `revision`, and the commit's hash.

    The worktree is removed again, whatever happens.

    Raises:
        UsageError: the workload is in no git repository, or there is no such commit or file.
    """
    if not source.file:
        raise UsageError(f"{source.qualname} has no file, so no commit has another version of it.")
    file = Path(source.file)
    with worktree(file.parent, revision) as (top, tree, commit):
        there = tree / file.relative_to(top)
        if not there.is_file():
            raise UsageError(
                f"There is no {file.relative_to(top)} at {revision!r} ({commit[:8]}): the workload "
                "is younger, or its file was renamed."
            )
        yield msgspec.structs.replace(source, file=str(there)), commit


@contextmanager
def worktree(folder: Path, revision: str) -> Iterator[tuple[Path, Path, str]]:
    """Yield the top of the repository of `folder`, a temporary worktree of it, and its commit.

    The worktree is removed again, whatever happens.

    Raises:
        UsageError: `folder` is in no git repository, or that has no such commit.
    """
    top = top_of(folder)
    if top is None:
        raise UsageError(
            f"{folder} is not in a git repository (or git is not there). So there is no "
            f"{revision!r} to compare with."
        )
    commit = commit_of(top, revision).hash
    if not commit:
        raise UsageError(
            f"{top} has no commit {revision!r}. `git log --oneline` lists them; a tag or a branch "
            "serves as well."
        )
    with tempfile.TemporaryDirectory(prefix="harness-") as scratch:
        tree = Path(scratch).resolve() / "tree"
        try:
            done = _git(top, "worktree", "add", "--detach", "--quiet", str(tree), commit)
            if done.returncode:
                raise HarnessError(f"git made no worktree of {revision!r}: {_said(done)}.")
            yield top, tree, commit
        finally:
            _git(top, "worktree", "remove", "--force", str(tree))


def top_of(folder: Path) -> Path | None:
    """Return the top of the repository that `folder` is in; None outside of any."""
    done = _git(folder, "rev-parse", "--show-toplevel")
    return None if done.returncode else Path(done.stdout.strip()).resolve()


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # No hook of the repository has a part in this.
    command = ["git", "-C", str(folder), "-c", "core.hooksPath=/dev/null", *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except OSError as error:
        raise UsageError(f"git cannot be run: {error}.") from None


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(done.stderr.split()).rstrip(".") or f"exit code {done.returncode}"
