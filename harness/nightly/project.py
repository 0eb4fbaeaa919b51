"""The asv project that a night measures: what its asv.conf.json says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from asv.config import Config
from asv.machine import Machine, MachineCollection
from asv.util import UserError

from harness.errors import UsageError
from harness.records.git import commit_of


@dataclass(frozen=True)
class Project:
    """Where an asv project keeps its parts; absolute paths."""

    folder: Path
    config: str
    results: Path
    benchmarks: Path
    repo: Path
    package: Path
    """The folder in `repo` that pip installs: `repo_subdir`, or all of it."""

    @property
    def commit(self) -> str:
        """The full hash of HEAD; "" outside a repository."""
        return commit_of(self.repo).hash

    @classmethod
    def read(cls, config: Path) -> Project:
        """Read a configuration of asv.

        Raises:
            UsageError: there is none, or asv cannot read it.
        """
        if not config.exists() and config.with_suffix(".jsonc").is_file():
            config = config.with_suffix(".jsonc")  # asv's other name for it
        if not config.is_file():
            raise UsageError(
                f"There is no asv project here: {config} does not exist. `harness init` writes "
                "one, or name yours with --config."
            )
        try:
            conf = Config.load(str(config))
        except UserError as error:
            raise UsageError(f"asv cannot read {config}: {error}") from error
        folder = config.resolve().parent
        repo = folder / conf.repo  # a remote repository is no folder: then the project's own
        repo = repo if repo.is_dir() else folder
        package = repo / conf.repo_subdir
        return cls(
            folder,
            config.name,
            folder / conf.results_dir,
            folder / conf.benchmark_dir,
            repo,
            package if package.is_dir() else repo,
        )


def know_machine(name: str) -> None:
    """Tell asv about a machine that it does not know, for it asks questions otherwise.

    `asv machine --yes --machine NAME` is no way to do it: asv 0.6.6 then stores no other field.
    """
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, {**Machine.get_defaults(), "machine": name})
