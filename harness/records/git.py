"""Git: which commit a folder is at, and a folder as it was at another one."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.errors import HarnessError, UsageError
from harness.jaxhooks.temporary import PREFIX, temporary_folder
from harness.workload.location import Source


@dataclass(frozen=True)
class Commit:
    """Which version of the code under test was measured; all empty where there is no git."""

    hash: str = ""
    date_ms: int | None = None
    dirty: str = ""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder; no hook of the repository has a part in it.

    Raises:
        OSError: there is no git on this machine.
    """
    command = ["git", "-C", str(folder), "-c", "core.hooksPath=/dev/null", *arguments]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False
    )


def output(folder: Path, *arguments: str) -> str:
    """Return what git prints, stripped; "" where it fails, there is no git, or no repository."""
    try:
        done = run(folder, *arguments)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commits_named(results: Path | None, *arms: str) -> dict[str, str]:
    """Return the hash of each name of a commit in the texts of arms: `v1.0`, `commit=HEAD~1,...`.

    In the repository of `results`; where they are in none, in that of the working directory.
    """
    words = [word for arm in arms for word in re.findall(r"(?:^|commit *= *)([^=,]+)(?=,|$)", arm)]
    for folder in filter(None, (results, Path())):
        hashes = {}
        for word in map(str.strip, words):
            try:
                done = run(folder, "rev-parse", "--verify", "--quiet", f"{word}^{{commit}}")
            except OSError:
                return {}
            if done.returncode == 128:  # in no repository
                break
            if not done.returncode:
                hashes[word] = done.stdout.strip()
        else:
            return hashes
    return {}


def commit_of(folder: Path, name: str = "HEAD", exclude: Path | None = None) -> Commit:
    """Return the commit that `folder` is at; an empty one without git or outside a repository.

    `exclude` is a folder whose changes do not make the tree dirty: the results themselves.
    """
    full = output(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not full:
        return Commit()
    date = output(folder, "show", "-s", "--format=%ct", full)
    changes = ""
    if name == "HEAD":
        top = Path(output(folder, "rev-parse", "--show-toplevel"))
        pathspec = ["--", "."]
        if exclude is not None and exclude.resolve().is_relative_to(top.resolve()):
            pathspec.append(f":(exclude,literal){exclude.resolve().relative_to(top.resolve())}")
        changes = output(top, "diff", "HEAD", *pathspec)
    dirty = hashlib.sha256(changes.encode()).hexdigest()[:12] if changes else ""
    return Commit(full, int(date) * 1000 if date else None, dirty)


@contextmanager
def checked_out(source: Source, revision: str) -> Iterator[tuple[Path, Path, Source, str]]:
    """Yield the top of a workload's repository and a temporary worktree of `revision`.

    Then where the workload is in that, and the commit's hash.

    The worktree is removed again, whatever happens.
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
        others = tuple(one for one in source.path if not Path(one).is_relative_to(top))
        yield top, tree, msgspec.structs.replace(source, file=str(there), path=others), commit


@contextmanager
def worktree(folder: Path, revision: str) -> Iterator[tuple[Path, Path, str]]:
    """Yield the top of the repository of `folder`, a temporary worktree of it, and its commit.

    The worktree is removed again, whatever happens.
    """
    top = top_of(folder)
    if top is None:
        raise UsageError(
            f"{folder} is not in a git repository (or git is not there). So there is no "
            f"{revision!r} to compare with."
        )
    commit = commit_of(top, revision).hash
    if not commit:
        shallow = output(top, "rev-parse", "--is-shallow-repository") == "true"
        more = " It is a shallow clone: `git fetch --unshallow` gets older ones." * shallow
        raise UsageError(
            f"{top} has no commit {revision!r}. `git log --oneline` lists them; a tag or a branch "
            f"serves as well.{more}"
        )
    remove_worktrees(top)
    try:
        with temporary_folder() as scratch:
            tree = scratch / f"{_TREE}{scratch.name.removeprefix(PREFIX)}"
            done = run(top, "worktree", "add", "--detach", "--quiet", str(tree), commit)
            if done.returncode:
                why = " ".join(done.stderr.split()).rstrip(".") or f"exit code {done.returncode}"
                raise HarnessError(f"git made no worktree of {revision!r}: {why}.")
            _add_submodules(top, tree, commit)
            _add_generated(top, tree)
            yield top, tree, commit
    finally:
        remove_worktrees(top)


def _add_submodules(top: Path, tree: Path, commit: str) -> None:
    """Put the submodules of `commit` that are checked out below `top` into a worktree of it."""
    for entry in output(top, "ls-tree", "-rz", "--full-tree", commit).split("\0"):
        about, _, path = entry.partition("\t")
        if not about.startswith("160000 ") or not (top / path / ".git").exists():
            continue
        with tempfile.NamedTemporaryFile(suffix=".tar") as packed:
            wanted = about.split()[2]
            if run(top / path, "archive", "-o", packed.name, wanted).returncode:
                where = f"The submodule {path} is at {wanted[:8]} in {commit[:8]}"
                raise UsageError(f"{where}, which is not here. `git -C {path} fetch` gets it.")
            shutil.unpack_archive(packed.name, tree / path, filter="data")
        _add_submodules(top / path, tree / path, wanted)


def _add_generated(top: Path, tree: Path) -> None:
    """Copy the modules that git ignores beside others, such as a build's `_version.py`."""
    ignored = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    for path in output(top, *ignored).split("\0"):
        there = tree / path
        if path.endswith(".py") and there.parent.is_dir() and not there.exists():
            shutil.copy(top / path, there)


_TREE = "harness-tree-"
"""Begins what git calls a worktree of ours."""


def left_worktrees(folder: Path) -> Iterator[Path]:
    """Yield what git knows of worktrees of ours that are gone, half-made ones too."""
    common = output(folder, "rev-parse", "--git-common-dir")
    for entry in (folder / common / "worktrees").glob(f"{_TREE}*") if common else ():
        about, scratch = entry / "gitdir", entry.name.removeprefix(_TREE)
        with contextlib.suppress(OSError):
            tree = Path(about.read_text().strip()) if about.exists() else None
            # Another process may be about to make it.
            if not (tree or Path(tempfile.gettempdir(), PREFIX + scratch, "-")).parents[1].exists():
                yield entry


def remove_worktrees(folder: Path) -> list[Path]:
    """Remove what :func:`left_worktrees` finds; return it. `git worktree prune` keeps some."""
    left = list(left_worktrees(folder))
    for entry in left:
        shutil.rmtree(entry, ignore_errors=True)
    return left


def top_of(folder: Path) -> Path | None:
    """Return the top of the repository that `folder` is in; None outside of any."""
    top = output(folder, "rev-parse", "--show-toplevel")
    return Path(top).resolve() if top else None
